"""Matrix products with trained weights, which fake quantisation may round."""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.layers.layer import rows_of


class MatrixProducts:
    """A layer that computes its matrix products by `matmul`.

    Attributes:
        rounding: an object that computes products with rounded factors, which
            `keras_vanilla.models.fake_quantize` sets, or None.
    """

    rounding: Any = None

    def matmul(self, rows: Tensor, matrix: Tensor) -> Tensor:
        """The product (R, F) of rows (R, D) and a matrix (D, F) of weights."""
        if self.rounding is None:
            return ops.matmul(rows, matrix)
        return self.rounding.matmul(rows, matrix)


class Dense(MatrixProducts, keras.layers.Dense):
    """`keras.layers.Dense` for rows (R, D), with `MatrixProducts`."""

    def call(self, inputs, training=None):
        x = self.matmul(inputs, self.kernel)
        if self.bias is not None:
            x = ops.add(x, self.bias)
        return x if self.activation is None else self.activation(x)


class HeadProjection(MatrixProducts, keras.layers.EinsumDense):
    """Computes x W + b for all heads, with W in the shape that Keras uses.

    This is one matrix product, which is a third faster than `einsum`.

    Args:
        units: (N, H) to map (B, T, D) to (B, T, N, H); (D,) for the reverse.
        use_bias: bool.
        kwargs: as for `keras.layers.EinsumDense`.
    """

    def __init__(self, units: tuple[int, ...], use_bias: bool, **kwargs):
        splits = len(units) == 2
        super().__init__(
            "abc,cde->abde" if splits else "abcd,cde->abe",
            (None, *units),
            bias_axes=("de" if splits else "e") if use_bias else None,
            **kwargs,
        )
        self.units = units
        self.supports_masking = True

    def add_weight(
        self,
        shape: tuple[int, ...] | None = None,
        initializer: str | Callable | None = None,
        **kwargs,
    ) -> keras.Variable:
        scaled = isinstance(initializer, keras.initializers.VarianceScaling)
        if scaled and len(shape) == 3 and not getattr(initializer, "input_axes", None):
            # Keras 3.14 would treat the heads of a kernel as a convolution's window.
            initializer = self._of_matrix(initializer)
        return super().add_weight(shape=shape, initializer=initializer, **kwargs)

    def _of_matrix(self, initializer):
        def draw(shape, dtype=None):
            outputs = math.prod(self.units)
            matrix = initializer((math.prod(shape) // outputs, outputs), dtype)
            return ops.reshape(matrix, shape)

        return draw

    def call(self, inputs, training=None):
        x, sizes = rows_of(inputs, len(inputs.shape) - 2)
        x = self.matmul(x, ops.reshape(self.kernel, (-1, math.prod(self.units))))
        if self.bias is not None:
            x = x + ops.reshape(self.bias, (-1,))
        return ops.reshape(x, (*sizes, *self.units))
