"""TensorFlow's operators for graphs, with equal results."""

import tensorflow as tf

from keras_vanilla._operators import Operators
from keras_vanilla._types import Tensor
from keras_vanilla.export.fused_projections import FusedProjections


class DynamicShapes(Operators):
    """TensorFlow's operators, whose shapes may depend on values."""

    def gather(self, values: Tensor, indices: Tensor) -> Tensor:
        return tf.gather(values, indices)

    def size_for(self, count: Tensor, most: int) -> Tensor:
        return count

    def true_positions(self, mask: Tensor, most: int) -> Tensor:
        return tf.squeeze(tf.where(mask), 1)  # as many as there are


class PhoneOperators(DynamicShapes, FusedProjections):
    """Operators that suit phones.

    Tables are read with EMBEDDING_LOOKUP, because a tied table that GATHER reads would
    be stored twice when quantised.

    Args:
        model: Transformer that computes in float32.
    """

    def lookup(self, table: Tensor, ids: Tensor) -> Tensor:
        ids = tf.convert_to_tensor(ids)
        rows = _embedding_matmul(tf.convert_to_tensor(table), tf.reshape(ids, [-1]))
        return tf.reshape(rows, tf.concat([tf.shape(ids), [table.shape[-1]]], axis=0))


@tf.function(experimental_implements="embedding_matmul", autograph=False)
def _embedding_matmul(value, ids):
    """A gather with the label that the converter turns into EMBEDDING_LOOKUP."""
    return tf.gather(value, ids)
