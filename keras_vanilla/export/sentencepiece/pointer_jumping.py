"""Pointer jumping: many jumps in a logarithmic number of steps, in a graph."""

import tensorflow as tf


def follow_jumps(jumps: tf.Tensor, start: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns the positions after given numbers of jumps, in log2(max(counts)) steps.

    Args:
        jumps: int32 tensor (n,). The position after one jump from each position.
        start: int or int32 tensor (). The position before the first jump.
        counts: int32 tensor (m,). The numbers of jumps.
    Returns:
        Int32 tensor (m,).
    """

    def step(bit, positions, jumps):
        """Makes `bit` jumps if the count has that bit; `jumps` combines them."""
        has_bit = tf.bitwise.bitwise_xor(counts, bit) < counts
        positions = tf.where(has_bit, tf.gather(jumps, positions), positions)
        return 2 * bit, positions, tf.gather(jumps, jumps)

    most = tf.reduce_max(counts)
    state = (1, tf.fill(tf.shape(counts), start), jumps)
    return tf.while_loop(lambda bit, *_: bit <= most, step, state)[1]
