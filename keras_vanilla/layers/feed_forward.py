"""The position-wise feed-forward network."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_probability, check_seed
from keras_vanilla.layers.dense import Dense
from keras_vanilla.layers.layer import (
    Layer,
    check_initializer,
    check_shape,
    kernel_settings,
    rows_of,
    serialized_kernel_settings,
)


@keras.saving.register_keras_serializable(package="keras_vanilla")
class FeedForward(Layer):
    """Maps each position through the same two-layer network.

        FFN(x) = max(0, x W1 + b1) W2 + b2

    This equals two convolutions of width 1. The mask is passed on.

    Args:
        d_ff: int. Width of the inner layer (F).
        activation: name or function between the two layers; "relu" in the paper.
        dropout: float. Rate after the activation; the paper uses none here.
        kernel_initializer: name or Initializer for both kernels.
        kernel_regularizer: name, Regularizer or None; for both kernels.
        seed: int or None. Seed of the dropout.
    Call arguments:
        inputs: float tensor (B, T, D).
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype.
    Raises:
        ValueError: if `d_ff` is not positive.
    Example:
        >>> tuple(FeedForward(d_ff=7)(np.ones((2, 3, 5), "float32")).shape)
        (2, 3, 5)

    Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(
        self,
        d_ff: int,
        *,
        activation: str | Callable = "relu",
        dropout: float = 0.0,
        kernel_initializer: str | Callable = "glorot_uniform",
        kernel_regularizer: Any = None,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.d_ff = check_integer("d_ff", d_ff, 1)
        self.activation = keras.activations.get(activation)
        self.dropout = check_probability("dropout", dropout)
        self.kernel_initializer = check_initializer(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.seed = check_seed(seed)
        self.supports_masking = True

    def build(self, input_shape):
        check_shape("FeedForward needs inputs of", (None, None, input_shape[-1]))
        self.inner = self._dense("inner", self.d_ff, self.activation)
        self.inner.build(input_shape)
        self.outer = self._dense("outer", input_shape[-1])
        self.outer.build((*input_shape[:-1], self.d_ff))
        self._dropout_layer = keras.layers.Dropout(
            self.dropout, seed=self.seed, dtype=self.dtype_policy
        )

    def _dense(self, name, units, activation=None):
        settings = kernel_settings(self.kernel_initializer, self.kernel_regularizer)
        return Dense(units, activation, **settings, name=name, dtype=self.dtype_policy)

    def call(self, inputs, training=None):
        rows, sizes = rows_of(inputs)
        inner = self._dropout_layer(self.inner(rows), training=training)
        outputs = self.outer(inner)  # (B T, F) -> (B T, D)
        return ops.reshape(outputs, (*sizes, outputs.shape[-1]))

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            **serialized_kernel_settings(self),
            "seed": self.seed,
        }
