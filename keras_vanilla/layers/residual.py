"""Dropout, residual connection and normalisation around every sub-layer."""

import keras

from keras_vanilla._types import Tensor


class Residual(keras.layers.Layer):
    """Dropout, residual connection and layer normalisation around a sub-layer.

        post-norm (the paper):  LayerNorm(x + Dropout(Sublayer(x)))
        pre-norm:               x + Dropout(Sublayer(LayerNorm(x)))

    Args:
        normalize_first: bool. Pre-norm instead of the paper's post-norm.
        dropout: float. On the sub-layer's output, before the addition.
        layer_norm_epsilon: float. Added to the variance under the square root.
        seed: int or None. Seed of the dropout.
    Example:
        x = residual.after(x, sublayer(residual.before(x)))
    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(
        self,
        normalize_first: bool,
        dropout: float,
        layer_norm_epsilon: float,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.normalize_first = normalize_first
        self.supports_masking = True
        self.dropout = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, name="norm", dtype=self.dtype_policy
        )

    def build(self, input_shape):
        self.norm.build(input_shape)

    def before(self, x: Tensor) -> Tensor:
        """The sub-layer's inputs, computed from the layer's inputs x (B, T, D)."""
        return self.norm(x) if self.normalize_first else x

    def after(self, x: Tensor, outputs: Tensor, training: bool | None = None) -> Tensor:
        """Adds the sub-layer's outputs to the inputs x (B, T, D)."""
        outputs = x + self.dropout(outputs, training=training)
        return outputs if self.normalize_first else self.norm(outputs)
