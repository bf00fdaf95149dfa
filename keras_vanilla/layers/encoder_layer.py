"""One layer of the encoder."""

import keras

from keras_vanilla.layers.transformer_layer import (
    TransformerLayer,
    is_padding_mask,
    is_sequence,
)


@keras.saving.register_keras_serializable(package="keras_vanilla")
class EncoderLayer(TransformerLayer):
    """Self-attention, then the feed-forward network, each inside a residual.

        x = LayerNorm(x + SelfAttention(x))
        x = LayerNorm(x + FFN(x))

    with dropout on each sub-layer's output before the addition. `normalize_first`
    moves each LayerNorm in front of its sub-layer; a stack of pre-norm layers needs
    one more LayerNorm at its end. Padding is never attended to; the mask is passed on.
    With `use_causal_mask`, this is the layer of a decoder-only language model. To
    replace a sub-layer, override `make_attention` or `make_feed_forward`.

    Args:
        num_heads: int. Number of heads (N).
        d_ff: int. Width of the feed-forward network's inner layer (F).
        key_dim: int or None. Size of each head; None means d_model / num_heads.
        dropout: float. Rate on each sub-layer's output, before the addition.
        attention_dropout: float or None. On attention weights; None means `dropout`.
        activation: name or function inside the feed-forward network.
        normalize_first: bool. Pre-norm instead of the paper's post-norm.
        layer_norm_epsilon: float. 1e-5 is PyTorch's and Marian's.
        kernel_initializer: name or Initializer for every kernel.
        kernel_regularizer: name, Regularizer or None; for every kernel.
        seed: int or None. Seed of all dropouts; each draws its own numbers.
    Call arguments:
        inputs: float tensor (B, S, D).
        mask: bool tensor (B, S). True = a real token. Keras fills it from the inputs.
        attention_mask: bool tensor (S, S), (B, S, S) or (B, N, S, S). True = may
            attend.
        use_causal_mask: bool. Position s sees positions 0..s.
        return_attention_scores: bool. Return the attention weights as well.
    Returns:
        Float tensor (B, S, D) in the layer's compute dtype; with
        `return_attention_scores` also the weights (B, N, S, S).
    Raises:
        TypeError: if an argument is unknown, or `d_ff` is missing.
        ValueError: if a size is not positive; when built, if `key_dim` is None and
            d_model is not divisible by `num_heads`; if a mask has the wrong shape.
    Example:
        >>> layer = EncoderLayer(num_heads=2, d_ff=16)
        >>> tuple(layer(np.ones((1, 3, 8), "float32")).shape)
        (1, 3, 8)

    Source: Vaswani et al. 2017, section 3.1.
    """

    def build(self, inputs_shape):
        self._width = inputs_shape[-1]
        self.self_attention, self.self_attention_residual = self._build_attention(
            "self_attention", inputs_shape, inputs_shape
        )
        self.feed_forward, self.feed_forward_residual = self._build_feed_forward(
            inputs_shape
        )

    def _is_usual_call(
        self, inputs, mask=None, inputs_mask=None, training=None, **unusual
    ):
        return (
            type(self) is EncoderLayer
            and not unusual
            and is_sequence(inputs, self._width)
            and is_padding_mask(mask, inputs)
            and is_padding_mask(inputs_mask, inputs)
        )

    def call(
        self,
        inputs,
        mask=None,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        inputs_mask=None,  # Keras's name for `mask` when there is an `attention_mask`
    ):
        mask = inputs_mask if mask is None else mask
        query = self.self_attention_residual.before(inputs)
        outputs, weights = self._attend(
            self.self_attention,
            query,
            query,
            return_attention_scores,
            query_mask=mask,
            value_mask=mask,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            training=training,
        )
        x = self.self_attention_residual.after(inputs, outputs, training=training)
        x = self._apply_feed_forward(x, training)
        return (x, weights) if return_attention_scores else x
