"""The frame around every sub-layer: dropout, residual connection, normalisation."""

import keras


class Residual(keras.layers.Layer):
    """Wraps a sub-layer in dropout, residual connection and layer normalisation.

        post-norm (the paper):  LayerNorm(x + Dropout(Sublayer(x)))
        pre-norm:               x + Dropout(Sublayer(LayerNorm(x)))

    Args:
        normalize_first: bool. Pre-norm instead of the paper's post-norm.
        dropout: float. On the sub-layer's output, before the addition.
        layer_norm_epsilon: float. Added to the variance under the root.
    Call arguments:
        inputs: float tensor (B, T, D).
        sublayer: function (B, T, D) -> (B, T, D).
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype.
    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(self, normalize_first, dropout, layer_norm_epsilon, **kwargs):
        super().__init__(**kwargs)
        self.normalize_first = normalize_first
        self.supports_masking = True
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, name="norm", dtype=self.dtype_policy
        )

    def build(self, input_shape):
        self.norm.build(input_shape)

    def call(self, inputs, sublayer, training=None):
        if self.normalize_first:
            outputs = sublayer(self.norm(inputs))
            return inputs + self.dropout(outputs, training=training)
        outputs = self.dropout(sublayer(inputs), training=training)
        return self.norm(inputs + outputs)
