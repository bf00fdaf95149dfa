"""The search that a `DecodingConfig` describes."""

from typing import Any

import keras

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.beam import beam_search
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.greedy import greedy_search
from keras_vanilla.decoding.searched_model import SearchedModel


def run_search(
    model: SearchedModel,
    source_ids: Tensor,
    config: DecodingConfig,
    *,
    return_scores: bool = False,
    return_notes: bool = False,
    **required: Any,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Maps source ids to target ids, by greedy or beam search.

    Args:
        model: SearchedModel.
        source_ids: int tensor (B, S).
        config: DecodingConfig.
        return_scores: bool. Return the scores of the best hypotheses as well. With
            `n_best` they are always returned.
        return_notes: bool. Return the scores, and notes of each token.
        required: the prefix and the terms, as for `greedy_search`.
    Returns:
        Int32 ids (B, L) of the best hypotheses; with `return_scores` also float32
        scores (B,). With `n_best`, ids (B, n_best, L), best first, and scores
        (B, n_best). The score of greedy search is the log-probability. With
        `return_notes` also a dict of tensors of the ids' shape, see `greedy_search`.
    Raises:
        ValueError: same as the search.
    """
    required["return_notes"] = return_notes
    if config.is_greedy:
        scores = {"return_scores": return_scores}
        return greedy_search(model, source_ids, config, **scores, **required)
    best = DecodingConfig.of(config, n_best=config.n_best or 1)
    results = beam_search(model, source_ids, best, **required)
    if config.n_best is None:
        results = keras.tree.map_structure(lambda x: x[:, 0], results)
    with_scores = return_notes or return_scores or config.n_best is not None
    return results if with_scores else results[0]
