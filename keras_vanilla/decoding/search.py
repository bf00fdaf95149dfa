"""The search that a `DecodingConfig` describes."""

from typing import Any

import keras

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.beam import beam_search
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.greedy import greedy_search


def run_search(
    model: Any,
    source_ids: Tensor,
    config: DecodingConfig,
    return_scores: bool = False,
    target_prefix: Tensor | None = None,
    return_notes: bool = False,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Maps source ids to target ids, by greedy or beam search.

    Args:
        model: as `greedy_search` takes it.
        source_ids: int tensor (B, S).
        config: DecodingConfig.
        return_scores: bool. Return the scores of the best hypotheses as well. With
            `n_best` they are always returned.
        target_prefix: int tensor (B, P) or None, as for `greedy_search`.
        return_notes: bool. Return the scores, and notes of each token.
    Returns:
        Int32 ids (B, L) of the best hypotheses; with `return_scores` also float32
        scores (B,). With `n_best` ids (B, n_best, L), best first, and scores
        (B, n_best). The score of greedy search is the log-probability. With
        `return_notes` also a dict of tensors like the ids, see `greedy_search`.
    Raises:
        ValueError: as the search.
    """
    if config.is_greedy:
        return greedy_search(
            model,
            source_ids,
            config.max_length,
            return_scores,
            target_prefix,
            config.no_repeat_ngram_size,
            return_notes,
            config.no_loops,
        )
    results = beam_search(
        model,
        source_ids,
        beam_size=config.beam_size,
        length_penalty=config.length_penalty,
        length_normalization=config.length_normalization,
        max_length=config.max_length,
        n_best=config.n_best or 1,
        target_prefix=target_prefix,
        no_repeat_ngram_size=config.no_repeat_ngram_size,
        return_notes=return_notes,
        no_loops=config.no_loops,
    )
    if config.n_best is None:
        results = keras.tree.map_structure(lambda x: x[:, 0], results)
    with_scores = return_notes or return_scores or config.n_best is not None
    return results if with_scores else results[0]
