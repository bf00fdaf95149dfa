"""One matrix product for the three projections of a self-attention."""

import math
from typing import Any

from keras import ops

from keras_vanilla._operators import Operators
from keras_vanilla._types import Tensor
from keras_vanilla.layers import MultiHeadAttention
from keras_vanilla.layers.dense import HeadProjection
from keras_vanilla.layers.layer import rows_of
from keras_vanilla.models.fake_quantization import SMALLEST_MATRIX
from keras_vanilla.models.transformer import Transformer


class FusedProjections(Operators):
    """Operators that compute queries, keys and values by one matrix product.

    The input of a self-attention is rounded to 8 bits once, instead of three times.

    Args:
        model: Transformer that computes in float32.
    """

    def __init__(self, model: Transformer):
        self._fused = {id(each): _Projections(each) for each in fused_attentions(model)}

    def project(
        self, attention: Any, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if (fused := self._fused.get(id(attention))) is not None:
            return fused(query)
        return super().project(attention, query, key, value)


def fused_attentions(model: Transformer) -> list[MultiHeadAttention]:
    """Returns the self-attentions whose projections form one matrix in a file.

    Args:
        model: Transformer.
    """
    layers = *model.encoder_layers, *model.decoder_layers
    attentions = [getattr(layer, "self_attention", None) for layer in layers]
    return [attention for attention in attentions if _is_plain(attention)]


def _is_plain(attention: Any) -> bool:
    """Returns True if an attention projects as in the paper; subclasses may differ.

    Kernels that are small enough to stay in float32 are not joined: the joined kernel
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
    """Computes the three projections of a self-attention as one matrix product.

    Args:
        attention: MultiHeadAttention for which `_is_plain` returns True.
    """

    def __init__(self, attention):
        denses = attention.query_dense, attention.key_dense, attention.value_dense
        self._kernel, self._bias = (
            ops.concatenate([getattr(dense, name) for dense in denses], axis=-2)
            for name in ("kernel", "bias")
        )

    def __call__(self, query):
        width, heads, size = self._kernel.shape
        x, sizes = rows_of(query)
        x = ops.matmul(x, ops.reshape(self._kernel, (width, heads * size)))
        x = x + ops.reshape(self._bias, (-1,))
        x = ops.reshape(x, (*sizes, heads, size))
        return ops.split(ops.transpose(x, (0, 2, 1, 3)), 3, axis=1)
