"""Scaled dot-product attention with several heads."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_probability, check_seed
from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor
from keras_vanilla.layers.attention_masks import (
    causal_mask,
    checked_mask,
    joined,
    masked_softmax,
    padding_mask,
    training_softmax,
)
from keras_vanilla.layers.dense import HeadProjection
from keras_vanilla.layers.layer import (
    Layer,
    check_initializer,
    check_same_sizes,
    check_shape,
    kernel_settings,
    serialized_kernel_settings,
)

FUSED = ("jax", "torch")  # backends whose fused attention is faster


@keras.saving.register_keras_serializable(package="keras_vanilla")
class MultiHeadAttention(Layer):
    """Maps each query to a weighted mean of the values, in several heads at once.

        Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V
        MultiHead(Q, K, V) = Concat(head_1, ..., head_N) W^O
        head_n = Attention(Q W_n^Q, K W_n^K, V W_n^V)

    Weight names and shapes are those of `keras.layers.MultiHeadAttention`, so weights
    can be copied between the two: `query`, `key` and `value` kernels (width of the
    input, N, H) with biases (N, H), `attention_output` kernel (N, H, D) with bias (D,).
    A query attends to a key if all masks allow it; a mask argument replaces the mask
    that Keras attaches to that tensor. A query that may not attend to anything gets
    zero weights. The softmax is computed in at least float32. JAX and PyTorch use their
    fused attention if no weights are returned, no dropout is applied and `value_dim`
    equals `key_dim`.

    To change how scores are computed, override `scores`; to change the projections,
    override `make_projection`. LoRA is that of
    `keras.layers.EinsumDense`: `layer.query_dense.enable_lora(4)`.

    Args:
        num_heads: int. Number of heads (N).
        key_dim: int. Size of each head's query and key (H, d_k in the formula).
        value_dim: int or None. Size of each head's value (d_v); None means `key_dim`.
        dropout: float. Dropout rate on the weights.
        use_bias: bool. Whether the four projections have biases.
        kernel_initializer: name or Initializer for the four kernels.
        kernel_regularizer: name, Regularizer or None; for the four kernels.
        seed: int or None. Seed of the dropout.
    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, any width).
        key: float tensor (B, S, any width) or None, which means `value`.
        query_mask: bool tensor (B, T). False rows attend to nothing.
        value_mask: bool tensor (B, S). True = may be attended to.
        key_mask: bool tensor (B, S), combined with `value_mask`.
        attention_mask: bool tensor, or one of 0 and 1, of shape (T, S), (B, T, S) or
            (B, N, T, S). True = may attend.
        return_attention_scores: bool. Return the weights as well.
        use_causal_mask: bool. Position t sees positions 0..t.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype; with
        `return_attention_scores` also the weights (B, N, T, S), before dropout.
    Raises:
        ValueError: if a size is not positive, an input does not have rank 3, known
            sizes B or S of the inputs differ, or a mask has another shape or other
            values than listed above.
    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3)
        >>> query, value = np.ones((1, 4, 6), "float32"), np.ones((1, 5, 6), "float32")
        >>> outputs, weights = attention(query, value, return_attention_scores=True)
        >>> tuple(outputs.shape), tuple(weights.shape)
        ((1, 4, 6), (1, 2, 4, 5))

    Source: Vaswani et al. 2017, sections 3.2.1 and 3.2.2.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        *,
        kernel_initializer: str | Callable = "glorot_uniform",
        kernel_regularizer: Any = None,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        value_dim = key_dim if value_dim is None else value_dim
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.key_dim = check_integer("key_dim", key_dim, 1)
        self.value_dim = check_integer("value_dim", value_dim, 1)
        self.dropout = check_probability("dropout", dropout)
        self.use_bias = use_bias
        self.kernel_initializer = check_initializer(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.seed = check_seed(seed)
        self.supports_masking = True
        self._dropout_layer = keras.layers.Dropout(
            dropout, seed=self.seed, dtype=self.dtype_policy
        )

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        shapes = {"query": query_shape, "value": value_shape, "key": key_shape}
        for name, shape in shapes.items():
            check_shape(f"`{name}` must have", shape)
        heads, width = self.num_heads, query_shape[-1]
        self.query_dense = self.make_projection("query", (heads, self.key_dim))
        self.query_dense.build(query_shape)
        self.key_dense = self.make_projection("key", (heads, self.key_dim))
        self.key_dense.build(key_shape)
        self.value_dense = self.make_projection("value", (heads, self.value_dim))
        self.value_dense.build(value_shape)
        self.output_dense = self.make_projection("attention_output", (width,))
        self.output_dense.build((None, None, heads, self.value_dim))

    def make_projection(self, name: str, units: tuple[int, ...]) -> keras.layers.Layer:
        """Creates the layer of one of the four projections.

        Args:
            name: "query", "key", "value" or "attention_output".
            units: (N, H) for the first three, which map (B, T, D) to (B, T, N, H);
                (D,) for the last one, which maps back.
        """
        return HeadProjection(
            units,
            self.use_bias,
            **kernel_settings(self.kernel_initializer, self.kernel_regularizer),
            name=name,
            dtype=self.dtype_policy,
        )

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
    ):
        key = value if key is None else key
        check_same_sizes(("batch",), query=query, value=value)
        check_same_sizes(("batch", "length"), key=key, value=value)
        mask = joined(
            padding_mask("query_mask", query_mask, query.shape[:2], axes=(1, 3)),
            padding_mask("value_mask", value_mask, value.shape[:2], axes=(1, 2)),
            padding_mask("key_mask", key_mask, key.shape[:2], axes=(1, 2)),
            checked_mask(attention_mask, query, key, self.num_heads),
            causal_mask(query, value) if use_causal_mask else None,
        )
        heads = self.project(query, key, value)
        if return_attention_scores:
            return self.attend_with_weights(*heads, mask, training=training)
        return self.attend(*heads, mask, training=training)

    def project(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Computes the queries, keys and values of all heads."""
        return current_operators().project(self, query, key, value)

    def project_query(self, query: Tensor) -> Tensor:
        """Queries of all heads: (B, T, D) -> (B, N, T, H)."""
        return _heads_first(self.query_dense(query))

    def project_key(self, key: Tensor) -> Tensor:
        """Keys of all heads: (B, S, D) -> (B, N, S, H)."""
        return _heads_first(self.key_dense(key))

    def project_value(self, value: Tensor) -> Tensor:
        """Values of all heads: (B, S, D) -> (B, N, S, H)."""
        return _heads_first(self.value_dense(value))

    def start_cache(self, batch: Tensor | int, length: Tensor | int) -> dict:
        """Allocates the projected keys and values of a sequence to be decoded.

        Args:
            batch: int or int32 scalar (B).
            length: int or int32 scalar. Number of positions (L).
        Returns:
            Dict of "key" and "value": zeros (B, N, L, H).
        Raises:
            ValueError: if the layer is not built.
        """
        self._check_built()
        return {
            name: ops.zeros((batch, heads, length, size), dtype=self.compute_dtype)
            for name, (heads, size) in {
                "key": self.key_dense.units,
                "value": self.value_dense.units,
            }.items()
        }

    def scores(self, query: Tensor, key: Tensor, index: Tensor | int = 0) -> Tensor:
        """Scores of each key for each query: Q K^T / sqrt(d_k).

        Args:
            query: float tensor (B, N, T, H).
            key: float tensor (B, N, S, H).
            index: int or int32 scalar. The position of the first query: 0 for whole
                sequences, that of the step when decoding token by token.
        Returns:
            Float tensor (B, N, T, S).
        """
        return ops.matmul(query * self.key_dim**-0.5, ops.swapaxes(key, -1, -2))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        training: bool | None = None,
        index: Tensor | int = 0,
    ) -> Tensor:
        """Attention over projected heads, concatenated and projected back.

        Args:
            query: float tensor (B, N, T, H).
            key: float tensor (B, N, S, H).
            value: float tensor (B, N, S, H).
            mask: bool tensor that broadcasts to (B, N, T, S), or None.
            training: bool or None. Whether dropout is active.
            index: as for `scores`.
        Returns:
            Outputs (B, T, D).
        """
        drops_weights = training and self.dropout > 0
        is_fused = keras.backend.backend() in FUSED and not self.is_extended
        same_size = self.value_dim == self.key_dim  # required by JAX
        if drops_weights or not (is_fused and same_size):
            return self.attend_with_weights(query, key, value, mask, training, index)[0]
        return self.output_dense(_fused_attention(query, key, value, mask))

    def attend_with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        training: bool | None = None,
        index: Tensor | int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Same as `attend`, but also returns the weights.

        Returns:
            Outputs (B, T, D), and the weights (B, N, T, S) before dropout.
        """
        scores, some = self.scores(query, key, index), None
        if training and mask is not None:
            weights, some = training_softmax(scores, mask)
        else:
            weights = masked_softmax(scores, mask)
        weights = ops.cast(weights, self.compute_dtype)
        dropped = self._dropout_layer(weights, training=training)
        heads = ops.matmul(dropped, value)  # (B, N, T, S) -> (B, N, T, H)
        if some is not None:
            heads, weights = heads * some, weights * some
        return self.output_dense(_heads_first(heads)), weights

    @property
    def is_extended(self) -> bool:
        """True if a subclass overrides how the weights are computed."""
        names = "scores", "attend", "attend_with_weights"
        base = MultiHeadAttention
        return any(
            getattr(type(self), name) is not getattr(base, name) for name in names
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            **serialized_kernel_settings(self),
            "seed": self.seed,
        }


def _heads_first(x):
    """(B, T, N, H) -> (B, N, T, H), or back."""
    return ops.transpose(x, (0, 2, 1, 3))


def _fused_attention(query, key, value, mask):
    """Computes heads (B, T, N, H) with `keras.ops.dot_product_attention`.

    Backends treat fully masked rows differently, so these rows attend to everything
    and their outputs are set to zero.
    """
    if mask is not None:
        some = ops.any(mask, axis=-1, keepdims=True)
        mask = ops.logical_or(mask, ops.logical_not(some))
    rows = [_heads_first(x) for x in (query, key, value)]
    heads = ops.dot_product_attention(*rows, mask=mask)  # (B, T, N, H)
    if mask is None:
        return heads
    return heads * ops.cast(_heads_first(some), heads.dtype)
