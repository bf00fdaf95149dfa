"""The search that a `DecodingConfig` describes."""

import keras

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.beam import beam_search
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.greedy import greedy_search
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.decoding.terms import Terms


def run_search(
    model: SearchedModel,
    source_ids: Tensor,
    config: DecodingConfig,
    target_prefix: Tensor | None = None,
    return_scores: bool = False,
    return_notes: bool = False,
    terms: Terms | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Maps source ids to target ids, by greedy or beam search.

    Args:
        model: SearchedModel.
        source_ids: int tensor (B, S).
        config: DecodingConfig.
        target_prefix: int tensor (B, P) or None, as for `greedy_search`.
        return_scores: bool. Return the scores of the best hypotheses as well. With
            `n_best` they are always returned.
        return_notes: bool. Return the scores, and notes of each token.
        terms: Terms or None. Terms that each output must contain, see `TermBanks`.
    Returns:
        Int32 ids (B, L) of the best hypotheses; with `return_scores` also float32
        scores (B,). With `n_best`, ids (B, n_best, L), best first, and scores
        (B, n_best). The score of greedy search is the log-probability. With
        `return_notes` also a dict of tensors of the ids' shape, see `greedy_search`.
    Raises:
        ValueError: same as the search.
    """
    if config.is_greedy:
        return greedy_search(
            model,
            source_ids,
            config,
            target_prefix,
            return_scores,
            return_notes,
            terms,
        )
    best = DecodingConfig.of(config, n_best=config.n_best or 1)
    results = beam_search(model, source_ids, best, target_prefix, return_notes, terms)
    if config.n_best is None:
        results = keras.tree.map_structure(lambda x: x[:, 0], results)
    with_scores = return_notes or return_scores or config.n_best is not None
    return results if with_scores else results[0]
