"""Greedy search: takes the most likely token at each step."""

from typing import Any

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.beam import beam_search
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.loop import decode_token_by_token
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.decoding.terms import Terms
from keras_vanilla.decoding.top_k import blockwise_top_k, log_total


def greedy_search(
    model: SearchedModel,
    source_ids: Tensor,
    config: DecodingConfig | None = None,
    target_prefix: Tensor | None = None,
    return_scores: bool = False,
    return_notes: bool = False,
    terms: Terms | None = None,
    **settings: Any,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Maps source ids to target ids, taking the most likely token at each step.

    This is one `keras.ops` loop over a cache of fixed length: the same code runs in
    Python, in a compiled graph and inside an exported file. If logits are equal, the
    lowest id is taken (PyTorch's `top_k` does not guarantee this).

    Args:
        model: SearchedModel, such as a Transformer.
        source_ids: int tensor (B, S).
        config: DecodingConfig or None. Its `beam_size` must be 1.
        target_prefix: int tensor (B, P) or None. The first tokens of each output,
            without start and end; shorter rows are padded at the end. They have the
            model's scores and count towards the length.
        return_scores: bool. Return the log-probabilities of the outputs as well.
        return_notes: bool. Return the scores, and notes of each token.
        terms: Terms or None. Terms that each output must contain, see `TermBanks`; with
            more beams they are placed better.
        settings: fields of `config`, such as `max_length`.
    Returns:
        Int32 tensor (B, L): the tokens, then `end_id` (unless the longest length was
        reached first), then `pad_id`. L is the config's `max_length`, or S + 50 (P if
        that is more). With `return_scores` also a float32 tensor (B,). With
        `return_notes` also the scores, and a dict of tensors (B, L): "log_probs"
        (float32), the tokens' log-probabilities, and the notes in the model's `noted`.
    Raises:
        TypeError: if a setting is unknown.
        ValueError: if `source_ids` has no row or no column, `max_length` is above the
            model's, an id of an eager tensor is outside the vocabulary, `beam_size` or
            `n_best` is given, or the prefix or a setting is invalid, see
            `DecodingConfig` and `Constraints`.
    Source: Vaswani et al. 2017, section 6.1, for the S + 50.
    """
    config = DecodingConfig.of(config, **settings)
    config.refuse_beams("greedy_search")
    if terms is not None:
        config = DecodingConfig.of(config, length_penalty=0)
        results = beam_search(
            model, source_ids, config, target_prefix, return_notes, terms
        )
        results = keras.tree.map_structure(lambda x: x[:, 0], results)
        return results if return_scores or return_notes else results[0]
    constraints = Constraints(model, source_ids, config, target_prefix)
    log_prob = _log_prob_of if constraints else _highest_log_prob
    ids, scores, notes = decode_token_by_token(
        model,
        source_ids,
        _most_likely,
        constraints,
        log_prob if return_scores or return_notes else None,
        return_notes,
        rows_may_leave=True,
    )
    if return_notes:
        return ids, scores, notes
    return (ids, scores) if return_scores else ids


def _most_likely(logits, index):
    return blockwise_top_k(logits, k=1)[1][:, 0]  # (B, V) -> (B,)


def _highest_log_prob(logits, chosen):
    # The highest probability is at least 1 / V, so it cannot underflow.
    return ops.log(ops.max(ops.softmax(logits), axis=1))  # (B, V) -> (B,)


def _log_prob_of(logits, chosen):
    chosen = ops.take_along_axis(logits, ops.expand_dims(chosen, 1), axis=1)
    return (chosen - log_total(logits))[:, 0]
