"""Checks, combines and applies attention masks.

All masks are boolean (True = may attend) and broadcast to (B, N, T, S).
"""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vanilla._readable import readable
from keras_vanilla._types import Tensor

FEW = 8  # queries
MARGIN = 50.0  # e^-50 is below the rounding of a sum in float64
LOWEST = -1e30  # below all scores, and finite in float32


def padding_mask(
    name: str, mask: Tensor | None, shape: tuple, axes: Sequence[int]
) -> Tensor | None:
    """Expands the padding mask of a sequence for queries, or for keys and values.

    Args:
        name: str. The argument's name, for errors.
        mask: bool tensor (B, L), or one of 0 and 1; or None.
        shape: (B, L), with None for unknown sizes.
        axes: the two axes of (B, N, T, S) that the mask does not have.
    Raises:
        ValueError: if the shape is wrong, or a value is neither 0 nor 1.
    """
    if mask is None:
        return None
    mask = _as_bool(name, mask)
    _check_shape(name, mask, "(B, L)", [shape], broadcast=())
    for axis in axes:
        mask = ops.expand_dims(mask, axis)
    return mask


def checked_mask(
    mask: Tensor | None, query: Tensor, key: Tensor, num_heads: int
) -> Tensor | None:
    """Expands an `attention_mask` to four dimensions, as Keras's attention does.

    Args:
        mask: bool tensor, or one of 0 and 1: (T, S), (B, T, S) or (B, N, T, S); or
            None.
        query: tensor (B, T, D).
        key: tensor (B, S, D).
        num_heads: int (N).
    Raises:
        ValueError: if the shape is wrong, or a value is neither 0 nor 1.
    """
    if mask is None:
        return None
    mask = _as_bool("attention_mask", mask)
    batch, rows, columns = query.shape[0], query.shape[1], key.shape[1]
    _check_shape(
        "attention_mask",
        mask,
        "(T, S), (B, T, S) or (B, N, T, S)",
        [
            (rows, columns),
            (batch, rows, columns),
            (batch, num_heads, rows, columns),
        ],
        broadcast=(1,),
    )
    for _ in range(4 - len(mask.shape)):
        mask = ops.expand_dims(mask, -3)
    return mask


def causal_mask(query: Tensor, value: Tensor) -> Tensor:
    """(1, 1, T, S) mask: position t sees positions 0..t."""
    rows = ops.expand_dims(ops.arange(ops.shape(query)[1]), 1)
    columns = ops.expand_dims(ops.arange(ops.shape(value)[1]), 0)
    mask = ops.greater_equal(rows, columns)
    return ops.expand_dims(ops.expand_dims(mask, 0), 0)


def joined(*masks: Tensor | None) -> Tensor | None:
    """Combines masks by AND and ignores those that are None; None if all are."""
    result = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else ops.logical_and(result, mask)
    return result


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over unmasked positions; zeros in rows that are fully masked.

    Masked positions get a score `MARGIN` below the lowest of their row, not -1e9. This
    is too low to change the sum, but close enough to the other scores that an 8-bit
    conversion keeps its resolution for them.

    Args:
        scores: float tensor (B, N, T, S).
        mask: bool tensor that broadcasts to it, or None.
    Returns:
        Weights of the same shape, in float32 at least.
    """
    dtype = keras.backend.result_type(scores.dtype, "float32")
    scores = ops.cast(scores, dtype)
    if mask is None:
        return _softmax(scores)
    lowest = ops.stop_gradient(ops.min(scores, axis=-1, keepdims=True))
    allowed = ops.cast(mask, dtype)
    if (scores.shape[-2] or FEW + 1) <= FEW:  # tokens of a search
        # The same as below, in operators that phones can vectorise.
        scores = scores * allowed + (lowest - MARGIN) * (1 - allowed)
    else:
        scores = ops.where(mask, scores, lowest - MARGIN)
    return _softmax(scores) * allowed


def training_softmax(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The weights of `masked_softmax` with fewer passes over them, also backwards.

    A masked score is so low that its weight is exactly zero, without another product,
    and so is its gradient. Fully masked rows, though, get uniform weights: the caller
    multiplies what it computes from them by the second result.

    Args:
        scores: float tensor (B, N, T, S).
        mask: bool tensor that broadcasts to it.
    Returns:
        Weights of the same shape, in float32 at least, and 1 for each row (B, N, T, 1)
        that is not fully masked, 0 for the others.
    """
    dtype = keras.backend.result_type(scores.dtype, "float32")
    bias = (1.0 - ops.cast(mask, dtype)) * LOWEST
    some = ops.any(mask, axis=-1, keepdims=True)
    return _softmax(ops.cast(scores, dtype) + bias), ops.cast(some, scores.dtype)


def _softmax(scores):
    """Softmax over the last axis, without Keras's warning where its size is 1."""
    if scores.shape[-1] == 1:  # a source or a target of one token
        return ops.exp(scores - scores)
    return ops.softmax(scores)


def _as_bool(name, mask):
    """A mask as booleans; refuses values other than 0 and 1, which are ambiguous."""
    mask = ops.convert_to_tensor(mask)
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype == "bool":
        return mask
    values = readable(mask)
    if values is None and "float" in dtype:
        raise ValueError(
            f"`{name}` must be boolean (True = may attend) where its values cannot be "
            f"read, as in a model: cast it to bool. Received: dtype={dtype}"
        )
    if values is None:
        return ops.cast(mask, "bool")
    other = values[(values != 0) & (values != 1)]
    if other.size:
        raise ValueError(
            f"`{name}` must be boolean or of 0 and 1 (1 = may attend); a mask that is "
            f"added to scores is not. Received: {other[0]!r}"
        )
    return ops.cast(mask, "bool")


def _check_shape(name, mask, expected, shapes, broadcast):
    """Refuses a shape not in `shapes`; sizes in `broadcast` are always allowed."""
    for shape in shapes:
        if len(mask.shape) == len(shape) and all(
            size in (None, full_size, *broadcast) or full_size is None
            for size, full_size in zip(mask.shape, shape, strict=True)
        ):
            return
    sizes = " or ".join(str(tuple(shape)) for shape in shapes)
    raise ValueError(
        f"`{name}` must have shape {expected}, here {sizes}. "
        f"Received: {tuple(mask.shape)}"
    )
