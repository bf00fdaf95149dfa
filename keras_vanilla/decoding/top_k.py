"""Top-k, in a form that is fast on phones."""

from keras import ops

from keras_vanilla._types import Tensor

BLOCK = 128  # numbers in a block


def blockwise_top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest values of each row, as `keras.ops.top_k` finds them.

    First it finds the k blocks with the highest maxima, then the k highest values in
    these blocks: TensorFlow Lite's `top_k` passes every value through a heap.

    Args:
        values: float tensor (B, n).
        k: int.
    Returns:
        The values (B, k), highest first, and their int32 places (B, k); of equal values
        the first comes first (PyTorch's `top_k` leaves the order open).
    """
    batch, size = ops.shape(values)
    blocks = -(-size // BLOCK)
    if blocks < 2 * k:
        best, places = ops.top_k(values, k=k)
        return best, ops.cast(places, "int32")
    padding = [[0, 0], [0, blocks * BLOCK - size]]
    values = ops.pad(values, padding, constant_values=float("-inf"))
    values = ops.reshape(values, (batch, blocks, BLOCK))
    chosen = ops.cast(ops.top_k(ops.max(values, axis=2), k=k)[1], "int32")
    chosen = ops.sort(chosen, axis=1)  # (B, k): of equal values the first
    values = ops.take_along_axis(values, ops.expand_dims(chosen, 2), axis=1)
    best, within = ops.top_k(ops.reshape(values, (batch, k * BLOCK)), k=k)
    within = ops.cast(within, "int32")
    block = ops.take_along_axis(chosen, ops.floor_divide(within, BLOCK), axis=1)
    return best, block * BLOCK + ops.mod(within, BLOCK)
