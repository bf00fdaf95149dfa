"""Layers in the operators of a phone: for a model while it is written as a graph."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tensorflow as tf
from keras import ops

from keras_vanilla.layers import MultiHeadAttention
from keras_vanilla.layers.head_projection import HeadProjection
from keras_vanilla.models.fake_quantization import SMALLEST_MATRIX
from keras_vanilla.models.transformer import Transformer


@contextmanager
def phone_layers(model: Transformer) -> Iterator[None]:
    """Within the block the model computes the same in operators that suit phones.

    EMBEDDING_LOOKUP reads its tables: a tied table that GATHER reads would be stored
    twice when it is quantised. Queries, keys and values of a self-attention are one
    matrix product, whose input is rounded to 8 bits once.

    Args:
        model: Transformer that computes in float32.
    """
    tables = model.source_embedding, model.target_embedding, model.output_projection
    tables = {id(table): table for table in tables if table is not None}
    with ExitStack() as stack:
        for table in tables.values():
            stack.enter_context(_replaced(table, "lookup", _lookup))
        for attention in fused_attentions(model):
            fused = _Projections(attention)
            stack.enter_context(_replaced(attention, "project", fused))
        yield


def fused_attentions(model: Transformer) -> list[MultiHeadAttention]:
    """The self-attentions whose three projections are one matrix in a file.

    Args:
        model: Transformer.
    """
    layers = *model.encoder_layers, *model.decoder_layers
    attentions = [getattr(layer, "self_attention", None) for layer in layers]
    return [attention for attention in attentions if _is_plain(attention)]


@contextmanager
def _replaced(layer, name, function):
    """A method of one layer is a function."""
    setattr(layer, name, function)
    try:
        yield
    finally:
        delattr(layer, name)  # the class's own again


def _lookup(table, ids):
    ids = tf.convert_to_tensor(ids)
    rows = _embedding_matmul(tf.convert_to_tensor(table), tf.reshape(ids, [-1]))
    return tf.reshape(rows, tf.concat([tf.shape(ids), [table.shape[-1]]], axis=0))


@tf.function(experimental_implements="embedding_matmul", autograph=False)
def _embedding_matmul(value, ids):
    """A gather; its label is what the converter turns into EMBEDDING_LOOKUP."""
    return tf.gather(value, ids)


def _is_plain(attention: Any) -> bool:
    """Whether an attention projects as the paper's; a subclass may do otherwise.

    Kernels so small that a file keeps them in float32 are left apart: together they
    would be rounded to 8 bits.
    """
    if not isinstance(attention, MultiHeadAttention):
        return False
    names = "project", "project_query", "project_key", "project_value"
    denses = attention.query_dense, attention.key_dense, attention.value_dense
    return (
        all(
            getattr(type(attention), n) is getattr(MultiHeadAttention, n) for n in names
        )
        and all(type(d) is HeadProjection and d.bias is not None for d in denses)
        and len({dense.units for dense in denses}) == 1
        and math.prod(attention.query_dense.kernel.shape) >= SMALLEST_MATRIX
    )


class _Projections:
    """The three projections of a self-attention as one matrix product.

    Args:
        attention: MultiHeadAttention of which `_is_plain` is true.
    """

    def __init__(self, attention):
        denses = attention.query_dense, attention.key_dense, attention.value_dense
        self._units = attention.query_dense.units
        self._kernel, self._bias = (
            ops.concatenate([getattr(dense, name) for dense in denses], axis=-2)
            for name in ("kernel", "bias")
        )

    def __call__(self, query, key, value):
        width, heads, size = self._kernel.shape
        x = ops.matmul(query, ops.reshape(self._kernel, (width, heads * size)))
        x = x + ops.reshape(self._bias, (-1,))
        batch, length = ops.shape(query)[:2]
        x = ops.reshape(x, (batch, length, heads, size))
        return ops.split(ops.transpose(x, (0, 2, 1, 3)), 3, axis=1)
