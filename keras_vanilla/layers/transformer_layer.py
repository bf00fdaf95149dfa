"""The base class of the encoder and decoder layers."""

from collections.abc import Callable
from typing import Any

import keras

from keras_vanilla._checks import (
    check_integer,
    check_number,
    check_probability,
    check_seed,
)
from keras_vanilla.layers.feed_forward import FeedForward
from keras_vanilla.layers.layer import (
    Layer,
    check_initializer,
    check_shape,
    kernel_settings,
    serialized_kernel_settings,
)
from keras_vanilla.layers.multi_head_attention import MultiHeadAttention
from keras_vanilla.layers.residual import Residual


def is_sequence(x: Any, width: int) -> bool:
    """True for a float KerasTensor of shape (B, T, width)."""
    return (
        isinstance(x, keras.KerasTensor)
        and keras.backend.is_float_dtype(x.dtype)
        and len(x.shape) == 3
        and x.shape[2] == width
    )


def is_padding_mask(mask: Any, x: keras.KerasTensor) -> bool:
    """True for None, or a bool KerasTensor (B, T) that matches x (B, T, D)."""
    return mask is None or (
        isinstance(mask, keras.KerasTensor)
        and mask.dtype == "bool"
        and len(mask.shape) == 2
        and all(m == n for m, n in zip(mask.shape, x.shape[:2], strict=True))
    )


class TransformerLayer(Layer):
    """Arguments and sub-layers that `EncoderLayer` and `DecoderLayer` share.

    To replace a sub-layer, override `make_attention` or `make_feed_forward` in a
    subclass.

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
    Raises:
        ValueError: if a size is not positive; when built, if `key_dim` is None and
            d_model is not divisible by `num_heads`.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        d_ff: int,
        key_dim: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        activation: str | Callable = "relu",
        normalize_first: bool = False,
        layer_norm_epsilon: float = 1e-5,
        kernel_initializer: str | Callable = "glorot_uniform",
        kernel_regularizer: Any = None,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.d_ff = check_integer("d_ff", d_ff, 1)
        self.key_dim = (
            key_dim if key_dim is None else check_integer("key_dim", key_dim, 1)
        )
        self.dropout = check_probability("dropout", dropout)
        self.attention_dropout = (
            attention_dropout
            if attention_dropout is None
            else check_probability("attention_dropout", attention_dropout)
        )
        self.activation = keras.activations.get(activation)
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = check_number(
            "layer_norm_epsilon", layer_norm_epsilon, least=0.0
        )
        self.kernel_initializer = check_initializer(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.seed = check_seed(seed)
        self._dropouts = 0
        self.supports_masking = True

    def make_attention(self, name: str, d_model: int) -> keras.layers.Layer:
        """Creates the attention of one sub-layer; override it to use another layer.

        Args:
            name: "self_attention" or "cross_attention", the layer's name.
            d_model: int. Width of the queries (D).
        Returns:
            `MultiHeadAttention`, or a layer with the same interface.
        """
        rate = self.attention_dropout
        return MultiHeadAttention(
            self.num_heads,
            self._head_size(d_model),
            dropout=self.dropout if rate is None else rate,
            **kernel_settings(self.kernel_initializer, self.kernel_regularizer),
            seed=self._next_seed(),
            name=name,
            dtype=self.dtype_policy,
        )

    def make_feed_forward(self, d_model: int) -> keras.layers.Layer:
        """Creates the feed-forward network; override it to use another layer.

        Args:
            d_model: int. Width of its inputs and outputs (D).
        Returns:
            A layer that maps (B, T, D) to (B, T, D).
        """
        return FeedForward(
            self.d_ff,
            activation=self.activation,
            **kernel_settings(self.kernel_initializer, self.kernel_regularizer),
            name="feed_forward",
            dtype=self.dtype_policy,
        )

    def compute_output_spec(self, inputs, *args, **kwargs):
        # Keras would trace `call`, which takes most of the time of building a model.
        if self.built and self._is_usual_call(inputs, *args, **kwargs):
            return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        return super().compute_output_spec(inputs, *args, **kwargs)

    def _is_usual_call(self, inputs, *args, **kwargs):
        """True if a call with these KerasTensors has one output like the inputs.

        False means unknown; Keras then traces the call.
        """
        return False

    def _build_attention(self, name, shape, value_shape):
        """An attention and the residual around it."""
        check_shape(f"{type(self).__name__} needs inputs of", shape)
        attention = self.make_attention(name, shape[-1])
        attention.build(shape, value_shape)
        return attention, self._build_residual(name, shape)

    def _build_feed_forward(self, shape):
        """A feed-forward network and the residual around it."""
        feed_forward = self.make_feed_forward(shape[-1])
        if not feed_forward.built:
            feed_forward.build(shape)
        return feed_forward, self._build_residual("feed_forward", shape)

    def _attend(self, attention, query, value, return_attention_scores, **settings):
        """The outputs of an attention, and its weights or None."""
        result = attention(
            query=query,
            value=value,
            return_attention_scores=return_attention_scores,
            **settings,
        )
        return result if return_attention_scores else (result, None)

    def _apply_feed_forward(self, x, training=None):
        """The layer's last sub-layer, with the residual around it."""
        # Keras propagates `training`, even through a network without this argument.
        outputs = self.feed_forward(self.feed_forward_residual.before(x))
        return self.feed_forward_residual.after(x, outputs, training=training)

    def _build_residual(self, name, shape):
        residual = Residual(
            self.normalize_first,
            self.dropout,
            self.layer_norm_epsilon,
            seed=self._next_seed(),
            name=f"{name}_residual",
            dtype=self.dtype_policy,
        )
        residual.build(shape)
        return residual

    def _next_seed(self):
        """A new seed per dropout; equal seeds would drop the same numbers."""
        self._dropouts += 1
        return None if self.seed is None else self.seed + self._dropouts

    def _head_size(self, d_model):
        if self.key_dim is not None:
            return self.key_dim
        if d_model % self.num_heads:
            raise ValueError(
                "`d_model` must be divisible by `num_heads`. "
                f"Received: d_model={d_model}, num_heads={self.num_heads}"
            )
        return d_model // self.num_heads

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "d_ff": self.d_ff,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": keras.activations.serialize(self.activation),
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            **serialized_kernel_settings(self),
            "seed": self.seed,
        }
