"""Greedy search: at each step, the most likely token."""

from typing import Any

from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.log_probs import log_total
from keras_vanilla.decoding.loop import decode_token_by_token
from keras_vanilla.decoding.repetition import repeats
from keras_vanilla.decoding.top_k import blockwise_top_k


def greedy_search(
    model: Any,
    source_ids: Tensor,
    max_length: int | None = None,
    return_scores: bool = False,
    target_prefix: Tensor | None = None,
    no_repeat_ngram_size: int | None = None,
    return_notes: bool = False,
    no_loops: bool = False,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Maps source ids to target ids, taking the most likely token at each step.

    One `keras.ops` loop over a cache of fixed length: the same code runs in Python, in
    a compiled graph and inside an exported file. Of equal logits the lowest id wins
    (PyTorch's `top_k` leaves the choice open).

    Args:
        model: has `encode`, `start_cache`, `decode_step`, `start_id`, `end_id`,
            `pad_id` and `max_length`, as `Transformer` has; for a prefix also
            `target_vocabulary_size`.
        source_ids: int tensor (B, S).
        max_length: int or None. Longest output in tokens, the end included. None means
            50 more than the row's own source has, whatever its padding, or as many as
            its prefix if that is longer; never more than the model's `max_length`.
        return_scores: bool. Return the log-probabilities of the outputs as well.
        target_prefix: int tensor (B, P) or None. The tokens that each output begins
            with, without start and end, pads after shorter ones. They are scored as the
            model scores them, and count in the length.
        no_repeat_ngram_size: int or None. No sequence of so many tokens occurs twice in
            an output, except where the prefix repeats one.
        return_notes: bool. Return the scores, and notes of each token.
        no_loops: bool. No output says anything four times in a row, unless its source
            does. Outputs that do not loop anyway stay what they are.
    Returns:
        Int32 tensor (B, L): the tokens, `end_id` after the last (unless the longest
        length was reached first), then `pad_id`. L is `max_length`, or S + 50 (P if
        that is more). With `return_scores` also a float32 tensor (B,). With
        `return_notes` also that, and a dict of tensors (B, L): "log_probs", float32,
        the tokens' log-probabilities, and what the model has to be noted, see
        `start_notes`.
    Raises:
        ValueError: if `source_ids` has no row or no column, `max_length` is below 1 or
            above the model's, an id that can be read is outside the vocabulary, or
            `target_prefix` or `no_repeat_ngram_size` is not valid, see `Constraints`.
    Source: Vaswani et al. 2017, section 6.1, for the S + 50.
    """
    may_loop = repeats(source_ids, model.pad_id) if no_loops else None
    constraints = Constraints(model, target_prefix, no_repeat_ngram_size, may_loop)
    log_prob = _log_prob_of if constraints else _highest_log_prob
    ids, scores, notes = decode_token_by_token(
        model,
        source_ids,
        _most_likely,
        max_length,
        log_prob if return_scores or return_notes else None,
        constraints,
        return_notes,
    )
    if return_notes:
        return ids, scores, notes
    return (ids, scores) if return_scores else ids


def _most_likely(logits, index):
    return blockwise_top_k(logits, k=1)[1][:, 0]  # (B, V) -> (B,)


def _highest_log_prob(logits, chosen):
    # The highest probability is at least 1 / V: it cannot underflow.
    return ops.log(ops.max(ops.softmax(logits), axis=1))  # (B, V) -> (B,)


def _log_prob_of(logits, chosen):
    chosen = ops.take_along_axis(logits, ops.expand_dims(chosen, 1), axis=1)
    return (chosen - log_total(logits))[:, 0]
