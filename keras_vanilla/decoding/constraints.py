"""Target prefixes and repetition limits."""

import copy
from typing import Any

import numpy as np
from keras import ops

from keras_vanilla._checks import check_ids, check_integer
from keras_vanilla._readable import readable
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.hypothesis_end import output_length

FORBIDDEN = float("-inf")  # the score of a forbidden token


class Constraints:
    """Forbids tokens that may not follow a hypothesis.

    The tokens of a prefix are decoded like others, one per step. Each step writes one
    position of the cache, and its token has the score that the model gives it.

    Args:
        model: object with `pad_id`, `start_id`, `end_id` and `max_length`; for a prefix
            also `target_vocabulary_size` and `forbidden_ids`.
        source_ids: int tensor (B, S).
        config: DecodingConfig.
        target_prefix: int array (B, P) or None. First tokens of each row's hypotheses,
            without start and end; shorter rows are padded at the end.
    Call arguments:
        scores: float tensor (B, V) or (B, K, V). Scores of the next token.
        ids: int32 tensor (B, L) or (B, K, L). The tokens so far, then any values.
        index: int32 scalar. Number of tokens so far.
    Returns:
        The scores, with -inf for forbidden tokens.
    Attributes:
        rows: dict of tensors, batch first, that the constraints have for each row.
    Raises:
        ValueError: if `source_ids` has no row or no column, `no_repeat_ngram_size` is
            above the model's `max_length`, or the prefix is invalid, see
            `checked_prefix`.
    """

    def __init__(
        self,
        model: Any,
        source_ids: Tensor,
        config: DecodingConfig,
        target_prefix: Tensor | None = None,
    ):
        check_source_shape(source_ids)
        self._model, self._config, self.rows = model, config, {}
        if config.loop_guard:
            texts = config.loop_guard.repeated_texts(source_ids, model.pad_id)
            self.rows["repeated_texts"] = texts
        if config.no_repeat_ngram_size is not None:
            check_integer(
                "no_repeat_ngram_size",
                config.no_repeat_ngram_size,
                1,
                model.max_length,
            )
        if target_prefix is not None:
            prefix = checked_prefix(
                model, target_prefix, np.shape(source_ids)[0], config.max_length
            )
            self.rows["prefix"] = ops.convert_to_tensor(prefix, dtype="int32")

    def __bool__(self) -> bool:
        """True if there is any constraint."""
        return bool(self.rows) or self._config.no_repeat_ngram_size is not None

    def of_rows(self, rows: dict[str, Tensor]) -> "Constraints":
        """The same constraints for other rows, such as some of the `rows` here."""
        other = copy.copy(self)
        other.rows = rows
        return other

    def row_limits(self, memory_mask: Tensor) -> tuple[Tensor | int, Tensor]:
        """The longest output of the batch, and of each row.

        The limit of a row depends on its source and its prefix, not on padding.

        Args:
            memory_mask: bool tensor (B, S).
        Returns:
            Int or int32 scalar, and an int32 tensor (B,) or the same int.
        Raises:
            ValueError: if the `max_length` of the config is above the model's.
        """
        model, most = self._model, self._config.max_length
        source_lengths = ops.sum(ops.cast(memory_mask, "int32"), axis=1)
        length = output_length(model, ops.shape(memory_mask)[1], most)
        limits = output_length(model, source_lengths, most)
        if "prefix" not in self.rows:
            return length, limits
        prefix = self.rows["prefix"]
        real = ops.cast(ops.not_equal(prefix, model.pad_id), "int32")
        width = ops.shape(prefix)[1]
        known = isinstance(length, int) and isinstance(width, int)
        length = max(length, width) if known else ops.maximum(length, width)
        return length, ops.maximum(limits, ops.sum(real, axis=1))

    def __call__(self, scores: Tensor, ids: Tensor, index: Tensor) -> Tensor:
        allowed, size = scores, self._config.no_repeat_ngram_size
        if size is not None:
            rows = ops.reshape(ids, (-1, ops.shape(ids)[-1]))  # (R, L)
            allowed = _without(scores, rows, _ends_same_ngram(rows, index, size))
        if "repeated_texts" in self.rows:
            allowed = self._without_loops(allowed, ids, index)
        return self.after_prefix(allowed, scores, index)

    def _without_loops(self, scores, ids, index):
        beams = ids if len(ids.shape) == 3 else ops.expand_dims(ids, 1)
        tokens = self._config.loop_guard.looping_tokens(
            beams, index, self.rows["repeated_texts"]
        )
        tokens = ops.reshape(tokens, (-1, ops.shape(tokens)[2]))  # (R, N)
        return _without(scores, ops.maximum(tokens, 0), ops.greater_equal(tokens, 0))

    def after_prefix(self, allowed: Tensor, scores: Tensor, index: Tensor) -> Tensor:
        """`allowed` after a row's prefix; within it, only the score of its token."""
        if "prefix" not in self.rows:
            return allowed
        pad_id = self._model.pad_id
        padded = ops.pad(self.rows["prefix"], ((0, 0), (0, 1)), constant_values=pad_id)
        last = ops.shape(padded)[1] - 1
        forced = ops.take(padded, ops.minimum(index, last), axis=1)  # (B,)
        for _ in scores.shape[1:]:
            forced = ops.expand_dims(forced, -1)
        is_forced = ops.equal(ops.arange(ops.shape(scores)[-1]), forced)
        return ops.where(
            ops.equal(forced, pad_id),
            allowed,
            ops.where(is_forced, scores, FORBIDDEN),
        )


def check_source_shape(source_ids: Tensor) -> None:
    """Refuses sources without a row or a column.

    Args:
        source_ids: int tensor (B, S).
    Raises:
        ValueError: if a size is 0, or the rank is not 2.
    """
    shape = tuple(np.shape(source_ids))
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            "`source_ids` must be integers (B, S), of at least one row and one "
            f"column. Received: shape {shape}"
        )


def checked_prefix(
    model: Any, prefix: Tensor, rows: int | None, max_length: int | None
) -> Tensor:
    """Checks a prefix and returns it as an integer array or tensor (B, P).

    Args:
        model: as for `Constraints`.
        prefix: the target prefix, as for `Constraints`.
        rows: int or None. Number of rows of `source_ids`; None if unknown.
        max_length: int or None, as for `greedy_search`.
    Raises:
        ValueError: if the prefix is not an integer array (B, P) with the rows of
            `source_ids`, or longer than any output can be; if an id of an eager prefix
            is outside the vocabulary, a start, an end or forbidden, or follows a pad.
    """
    ids = prefix
    try:
        ids = ids if hasattr(ids, "dtype") else np.asarray(ids)
    except ValueError:  # rows of different lengths
        ids = np.zeros(())
    longest = output_length(model, model.max_length, max_length)
    is_table = len(ids.shape) == 2 and ("int" in str(ids.dtype) or 0 in ids.shape)
    if (
        not is_table
        or (None not in (ids.shape[0], rows) and ids.shape[0] != rows)
        or (ids.shape[1] is not None and ids.shape[1] > longest)
    ):
        received = f"shape {tuple(ids.shape)}" if is_table else f"{prefix!r:.80}"
        raise ValueError(
            f"`target_prefix` must be an integer array (B, P) with the {rows} rows of "
            f"`source_ids` and at most {longest} columns, the tokens of the longest "
            f"output, its shorter rows padded with pad_id={model.pad_id}. Received: "
            f"{received}"
        )
    values = readable(ids)
    if values is not None:
        _check_prefix_ids(model, values)
    return ids


def _check_prefix_ids(model, ids):
    real = ids != model.pad_id
    if model.target_vocabulary_size is not None:
        check_ids("id of `target_prefix`", ids[real], model.target_vocabulary_size)
    for wrong, expected in (
        (real & (ids == model.start_id), "are given without the start"),
        (real & (ids == model.end_id), "are given without an end"),
        (
            real & np.isin(ids, model.forbidden_ids),
            f"must not be among the model's `forbidden_ids`, {[*model.forbidden_ids]}",
        ),
        (real[:, 1:] & ~real[:, :-1], "come before the pads of their row"),
    ):
        if wrong.any():
            row = int(np.flatnonzero(wrong.any(axis=1))[0])
            raise ValueError(
                f"The ids of `target_prefix` {expected}. Received: row {row}, "
                f"{ids[row].tolist()}"
            )


def _without(scores, tokens, forbidden):
    """The scores, -inf for `tokens` (R, N) of each row where `forbidden` (R, N)."""
    shape = ops.shape(scores)  # (B, V) or (B, K, V), R rows
    rows, size = ops.shape(tokens)[0], shape[-1]
    indices = ops.expand_dims(ops.arange(rows, dtype="int32"), 1) * size + tokens
    # -inf is added, because selecting among all scores takes several times as long.
    added = ops.scatter(
        ops.reshape(indices, (-1, 1)),
        ops.reshape(ops.where(forbidden, FORBIDDEN, 0.0), (-1,)),
        (rows * size,),
    )
    return scores + ops.cast(ops.reshape(added, shape), scores.dtype)


def _ends_same_ngram(ids, index, size):
    """(R, L): True if the size - 1 tokens before a token equal the row's newest."""
    positions = ops.arange(ops.shape(ids)[1], dtype="int32")
    same = (positions >= size - 1) & (positions < index)  # (L,)
    same = ops.broadcast_to(same, ops.shape(ids))
    for back in range(1, size):
        newest = ops.take(ids, ops.maximum(index - back, 0), axis=1)  # (R,)
        before = ops.pad(ids, ((0, 0), (back, 0)))[:, :-back]
        same = same & ops.equal(before, ops.expand_dims(newest, 1))
    return same
