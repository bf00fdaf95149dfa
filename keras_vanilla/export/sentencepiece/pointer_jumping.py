"""Where jumps from place to place lead, in a TensorFlow graph."""

import tensorflow as tf


def follow(jumps, start, counts):
    """The places where numbers of jumps lead, found in log2(highest number) steps.

    Args:
        jumps: int32 tensor (n,). Where one jump leads from each place.
        start: int or int32 tensor (). The place before the first jump.
        counts: int32 tensor (m,). The numbers of jumps.
    Returns:
        Int32 tensor (m,).
    """

    def step(bit, places, jumps):
        """Does `bit` jumps where the number holds that bit; `jumps` does so many."""
        has_bit = tf.bitwise.bitwise_xor(counts, bit) < counts
        places = tf.where(has_bit, tf.gather(jumps, places), places)
        return 2 * bit, places, tf.gather(jumps, jumps)

    most = tf.reduce_max(counts)
    state = (1, tf.fill(tf.shape(counts), start), jumps)
    return tf.while_loop(lambda bit, *_: bit <= most, step, state)[1]
