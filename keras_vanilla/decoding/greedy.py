"""Greedy search: at each step, the most likely token."""

from typing import Any

from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.loop import decode_token_by_token
from keras_vanilla.decoding.top_k import blockwise_top_k


def greedy_search(
    model: Any,
    source_ids: Tensor,
    max_length: int | None = None,
    return_scores: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Maps source ids to target ids, taking the most likely token at each step.

    One `keras.ops` loop over a cache of fixed length: the same code runs in Python, in
    a compiled graph and inside an exported file. Of equal logits the lowest id wins
    (PyTorch's `top_k` leaves the choice open).

    Args:
        model: has `encode`, `start_cache`, `decode_step`, `start_id`, `end_id`,
            `pad_id` and `max_length`, as `Transformer` has.
        source_ids: int tensor (B, S).
        max_length: int or None. Longest output in tokens, the end included. None means
            50 more than the row's own source has, whatever its padding, and never more
            than the model's `max_length`.
        return_scores: bool. Return the log-probabilities of the outputs as well.
    Returns:
        Int32 tensor (B, L): the tokens, `end_id` after the last (unless the longest
        length was reached first), then `pad_id`. L is `max_length`, or S + 50. With
        `return_scores` also a float32 tensor (B,).
    Raises:
        ValueError: if `max_length` is below 1 or above the model's, or an id that can
            be read is outside the vocabulary.
    Source: Vaswani et al. 2017, section 6.1, for the S + 50.
    """
    log_prob = _highest_log_prob if return_scores else None
    ids, scores = decode_token_by_token(
        model, source_ids, _most_likely, max_length, log_prob
    )
    return (ids, scores) if return_scores else ids


def _most_likely(logits, index):
    return blockwise_top_k(logits, k=1)[1][:, 0]  # (B, V) -> (B,)


def _highest_log_prob(logits):
    # The highest probability is at least 1 / V: it cannot underflow.
    return ops.log(ops.max(ops.softmax(logits), axis=1))  # (B, V) -> (B,)
