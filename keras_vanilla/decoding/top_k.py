"""Log-probabilities of the next tokens, and a top-k that is fast on phones."""

from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor

NOTHING = float("-inf")  # the log-probability of a hypothesis that does not exist
BLOCK = 128  # numbers in a block, at least


def blockwise_top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Finds the k highest values of each row, as `keras.ops.top_k` does.

    It first finds the k blocks with the highest maxima, then the k highest values in
    these blocks. This is faster because TensorFlow Lite's `top_k` passes every value
    through a heap.

    Args:
        values: float tensor (B, n).
        k: int.
    Returns:
        The values (B, k), highest first, and their int32 indices (B, k). Equal values
        keep their order (PyTorch's `top_k` does not guarantee this).
    """
    batch, size = ops.shape(values)
    block, blocks = _blocks(size)
    if blocks < 2 * k:
        best, indices = ops.top_k(values, k=k)
        return best, ops.cast(indices, "int32")
    if block * blocks > size:
        padding = [[0, 0], [0, block * blocks - size]]
        values = ops.pad(values, padding, constant_values=float("-inf"))
    values = ops.reshape(values, (batch, blocks, block))
    chosen = ops.cast(ops.top_k(ops.max(values, axis=2), k=k)[1], "int32")
    if k > 1:  # (B, k), so equal values keep their order
        chosen = current_operators().sort(chosen)
    rows = ops.expand_dims(ops.arange(batch, dtype="int32") * blocks, 1) + chosen
    values = ops.reshape(values, (batch * blocks, block))
    values = ops.reshape(ops.take(values, rows, axis=0), (batch, k * block))
    best, within = ops.top_k(values, k=k)
    within = ops.cast(within, "int32")
    if k > 1:
        chosen = ops.take_along_axis(chosen, ops.floor_divide(within, block), axis=1)
    return best, chosen * block + ops.mod(within, block)


def best_tokens(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest scores of each beam, and their tokens: (B, K, V) -> (B, K, k)."""
    batch, beam_size, size = ops.shape(scores)
    best, tokens = blockwise_top_k(ops.reshape(scores, (-1, size)), k)
    shape = batch, beam_size, k
    return ops.reshape(best, shape), ops.reshape(tokens, shape)


def _blocks(size):
    """The size and number of blocks; if possible, the last block is full."""
    for block in range(BLOCK, 2 * BLOCK):
        if size % block == 0:
            return block, size // block
    return BLOCK, -(-size // BLOCK)


def log_total(logits: Tensor) -> Tensor:
    """The log-sum-exp of logits; logits minus it are log-probabilities.

    Args:
        logits: float tensor (..., V).
    Returns:
        Float tensor (..., 1).
    """
    # TensorFlow Lite's log-softmax operator takes four times as long.
    maximum = ops.max(logits, axis=-1, keepdims=True)
    total = ops.sum(ops.exp(logits - maximum), axis=-1, keepdims=True)
    return ops.log(total) + maximum
