"""Pointer jumping: many jumps in a logarithmic number of steps, in a graph."""

from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor


def follow_jumps(jumps: Tensor, start: Tensor | int, counts: Tensor) -> Tensor:
    """Returns the positions after given numbers of jumps, in log2(max(counts)) steps.

    Args:
        jumps: int32 tensor (n,). The position after one jump from each position.
        start: int or int32 tensor (). The position before the first jump.
        counts: int32 tensor (m,). The numbers of jumps.
    Returns:
        Int32 tensor (m,).
    """
    gather = current_operators().gather

    def step(bit, positions, jumps):
        """Makes `bit` jumps if the count has that bit; `jumps` combines them."""
        has_bit = ops.bitwise_xor(counts, bit) < counts
        positions = ops.where(has_bit, gather(jumps, positions), positions)
        return 2 * bit, positions, gather(jumps, jumps)

    most = ops.max(counts)
    state = (1, ops.zeros_like(counts) + start, jumps)
    return ops.while_loop(lambda bit, *_: bit <= most, step, state)[1]
