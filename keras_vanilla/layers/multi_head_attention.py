"""Scaled dot-product attention with several heads."""

import math

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_probability
from keras_vanilla._types import Tensor

FUSED = ("jax", "torch")  # backends whose fused attention is faster than its parts


@keras.saving.register_keras_serializable(package="keras_vanilla")
class MultiHeadAttention(keras.layers.Layer):
    """Maps each query to a weighted mean of values, in several heads at once.

        Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V
        MultiHead(Q, K, V) = Concat(head_1, ..., head_N) W^O
        head_n = Attention(Q W_n^Q, K W_n^K, V W_n^V)

    Weight names and shapes are those of `keras.layers.MultiHeadAttention`, so weights
    go from one to the other: `query`, `key`, `value` kernels (D, N, H) with biases
    (N, H), `attention_output` kernel (N, H, D) with bias (D,). All masks are joined by
    AND; explicit ones win over those that Keras finds on the tensors. A query that may
    attend to nothing gets zero weights, with and without returned weights. The softmax
    is computed in float32 at least. Where no weights are returned and none are dropped,
    JAX and PyTorch compute all of it in their fused attention, if `value_dim` is
    `key_dim`.

    Args:
        num_heads: int. Number of heads (N).
        key_dim: int. Size of each head's query and key (d_k).
        value_dim: int or None. Size of each head's value (d_v); None means `key_dim`.
        dropout: float. Dropout on the weights.
        use_bias: bool. Whether the four projections have biases.
        seed: int or None. Of the dropout.
    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, D_v).
        key: float tensor (B, S, D_k) or None, which means `value`.
        query_mask: bool tensor (B, T). False rows attend to nothing.
        value_mask: bool tensor (B, S). True = may be attended to.
        key_mask: bool tensor (B, S), joined with `value_mask`.
        attention_mask: bool tensor (B, T, S). True = may attend.
        return_attention_scores: bool. Return the weights as well.
        use_causal_mask: bool. Position t sees positions 0..t.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype; with
        `return_attention_scores` also the weights (B, N, T, S), before dropout.
    Raises:
        ValueError: if a size is not positive, or an input is not of rank 3.
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
        self.seed = seed
        self.supports_masking = True
        self._dropout_layer = keras.layers.Dropout(
            dropout, seed=seed, dtype=self.dtype_policy
        )

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        shapes = {"query": query_shape, "value": value_shape, "key": key_shape}
        for name, shape in shapes.items():
            if len(shape) != 3:
                raise ValueError(
                    f"`{name}` must have shape (batch, length, width). "
                    f"Received: {tuple(shape)}"
                )
        heads, width = self.num_heads, query_shape[-1]
        self.query_dense = self._projection("query", (heads, self.key_dim))
        self.query_dense.build(query_shape)
        self.key_dense = self._projection("key", (heads, self.key_dim))
        self.key_dense.build(key_shape)
        self.value_dense = self._projection("value", (heads, self.value_dim))
        self.value_dense.build(value_shape)
        self.output_dense = self._projection("attention_output", (width,))
        self.output_dense.build((None, None, heads, self.value_dim))

    def _projection(self, name, units):
        return _Projection(units, self.use_bias, name=name, dtype=self.dtype_policy)

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
        masks = [
            None if query_mask is None else ops.expand_dims(query_mask, 2),
            None if value_mask is None else ops.expand_dims(value_mask, 1),
            None if key_mask is None else ops.expand_dims(key_mask, 1),
            attention_mask,
            _causal_mask(query, value) if use_causal_mask else None,
        ]
        heads = (
            self.project_query(query),
            self.project_key(key),
            self.project_value(value),
        )
        if return_attention_scores:
            return self.attend_with_weights(*heads, _all_of(masks), training=training)
        return self.attend(*heads, _all_of(masks), training=training)

    def project_query(self, query: Tensor) -> Tensor:
        """Queries of all heads: (B, T, D) -> (B, N, T, H)."""
        return self._split_heads(self.query_dense(query), self.key_dim)

    def project_key(self, key: Tensor) -> Tensor:
        """Keys of all heads: (B, S, D) -> (B, N, S, H)."""
        return self._split_heads(self.key_dense(key), self.key_dim)

    def project_value(self, value: Tensor) -> Tensor:
        """Values of all heads: (B, S, D) -> (B, N, S, H)."""
        return self._split_heads(self.value_dense(value), self.value_dim)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Attention between projected heads, joined and projected back.

        Args:
            query: float tensor (B, N, T, H).
            key: float tensor (B, N, S, H).
            value: float tensor (B, N, S, H).
            mask: bool tensor that broadcasts to (B, T, S), or None.
            training: bool or None. Whether dropout is active.
        Returns:
            Outputs (B, T, D).
        """
        drops_weights = training and self.dropout > 0
        is_fused = keras.backend.backend() in FUSED and self.value_dim == self.key_dim
        if drops_weights or not is_fused:  # JAX's needs values as wide as keys
            return self.attend_with_weights(query, key, value, mask, training)[0]
        return self.output_dense(_fused_attention(query, key, value, mask))

    def attend_with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`attend`, with the weights; arguments as there.

        Returns:
            Outputs (B, T, D), and the weights (B, N, T, S) before dropout.
        """
        scores = ops.matmul(query * self.key_dim**-0.5, ops.swapaxes(key, -1, -2))
        weights = ops.cast(_masked_softmax(scores, mask), self.compute_dtype)
        dropped = self._dropout_layer(weights, training=training)
        heads = ops.matmul(dropped, value)  # (B, N, T, S) -> (B, N, T, H)
        return self.output_dense(_join_heads(heads)), weights

    def _split_heads(self, x, size):
        batch, length = ops.shape(x)[:2]
        x = ops.reshape(x, (batch, length, self.num_heads, size))
        return ops.transpose(x, (0, 2, 1, 3))  # (B, T, N, H) -> (B, N, T, H)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "seed": self.seed,
        }


class _Projection(keras.layers.Layer):
    """x W + b, with W kept in Keras's per-head shape and used as one matrix."""

    def __init__(self, units, use_bias, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.use_bias = use_bias
        self.supports_masking = True

    def build(self, input_shape):
        inputs = tuple(input_shape[2:])
        self._matrix_shape = (math.prod(inputs), math.prod(self.units))
        self.kernel = self.add_weight(
            name="kernel",
            shape=inputs + self.units,
            initializer=self._glorot_of_the_matrix,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=self.units, initializer="zeros"
            )

    def _glorot_of_the_matrix(self, shape, dtype=None):
        # Glorot of a rank-3 shape would take the width for a convolution's window.
        matrix = keras.initializers.GlorotUniform()(self._matrix_shape, dtype=dtype)
        return ops.reshape(matrix, shape)

    def call(self, inputs):
        outputs = ops.matmul(inputs, ops.reshape(self.kernel, self._matrix_shape))
        if self.bias is None:
            return outputs
        return outputs + ops.reshape(self.bias, self._matrix_shape[1:])


def _join_heads(x):
    batch, heads, length, size = ops.shape(x)
    x = ops.transpose(x, (0, 2, 1, 3))  # (B, N, T, H) -> (B, T, N, H)
    return ops.reshape(x, (batch, length, heads * size))


def _fused_attention(query, key, value, mask):
    """Joined heads (B, T, N * H) of `keras.ops.dot_product_attention`.

    Backends differ on a row with nothing to attend to: it sees all, and is zeroed.
    """
    if mask is not None:
        mask = ops.expand_dims(mask, 1)  # (B, T, S) -> (B, 1, T, S)
        some = ops.any(mask, axis=-1, keepdims=True)
        mask = ops.logical_or(mask, ops.logical_not(some))
    rows = [ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value)]
    heads = ops.dot_product_attention(*rows, mask=mask)  # (B, T, N, H)
    if mask is not None:
        heads = heads * ops.cast(ops.transpose(some, (0, 2, 1, 3)), heads.dtype)
    batch, length, count, size = ops.shape(heads)
    return ops.reshape(heads, (batch, length, count * size))


def _causal_mask(query, value):
    rows = ops.expand_dims(ops.arange(ops.shape(query)[1]), 1)
    columns = ops.expand_dims(ops.arange(ops.shape(value)[1]), 0)
    return ops.expand_dims(ops.greater_equal(rows, columns), 0)  # (1, T, S)


def _all_of(masks):
    """The masks that are there, joined by AND; None when there are none."""
    joined = None
    for mask in masks:
        if mask is not None:
            mask = ops.cast(mask, "bool")
            joined = mask if joined is None else ops.logical_and(joined, mask)
    return joined


def _masked_softmax(scores, mask):
    """Softmax over what may be attended to; zeros where that is nothing.

    A finite bias, because -inf gives NaN on a row with nothing to attend to.
    """
    dtype = keras.backend.result_type(scores.dtype, "float32")
    scores = ops.cast(scores, dtype)
    if mask is None:
        return ops.softmax(scores)
    mask = ops.expand_dims(mask, 1)  # (B, T, S) -> (B, 1, T, S)
    bias = ops.cast(ops.logical_not(mask), dtype) * -1e9
    some = ops.cast(ops.any(mask, axis=-1, keepdims=True), dtype)
    return ops.softmax(scores + bias) * some
