"""One layer of the decoder, for whole sequences and for one token at a time."""

import keras
from keras import ops

from keras_vanilla.layers.transformer_layer import TransformerLayer


@keras.saving.register_keras_serializable(package="keras_vanilla")
class DecoderLayer(TransformerLayer):
    """Masked self-attention, attention to the encoder, then the feed-forward network.

        x = LayerNorm(x + MaskedSelfAttention(x))
        x = LayerNorm(x + CrossAttention(x, memory))    <- K = V = the encoder's output
        x = LayerNorm(x + FFN(x))

    with dropout on each sub-layer's output before the addition. Position t sees
    positions 0..t, and no padding of either sequence; the mask of `inputs` goes
    through. `call` takes the whole target; `start_cache` and `step` compute the same
    one position at a time. Arguments as in `EncoderLayer`.

    Args:
        num_heads: int. Number of heads (N).
        d_ff: int. Width of the feed-forward network's inner layer (F).
        key_dim: int or None. Size of each head; None means d_model / num_heads.
        dropout: float. On each sub-layer's output, before the addition.
        attention_dropout: float or None. On attention weights; None means `dropout`.
        activation: name or function inside the feed-forward network.
        normalize_first: bool. Pre-norm instead of the paper's post-norm.
        layer_norm_epsilon: float. 1e-5 is PyTorch's and Marian's.
    Call arguments:
        inputs: float tensor (B, T, D).
        memory: float tensor (B, S, D). The encoder's output.
        inputs_mask: bool tensor (B, T). Keras fills it from `inputs`.
        memory_mask: bool tensor (B, S). Keras fills it from `memory`.
        return_attention_scores: bool. Return both attentions' weights as well.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype; with
        `return_attention_scores` also the weights (B, N, T, T) and (B, N, T, S).
    Raises:
        ValueError: if a size is not positive; when built, if `key_dim` is None and
            d_model is not divisible by `num_heads`; if a step's index is past the
            cache.
    Example:
        >>> layer = DecoderLayer(num_heads=2, d_ff=16)
        >>> target = np.ones((1, 3, 8), "float32")
        >>> memory = np.ones((1, 5, 8), "float32")
        >>> tuple(layer(target, memory).shape)
        (1, 3, 8)

    Source: Vaswani et al. 2017, section 3.1.
    """

    def build(self, inputs_shape, memory_shape):
        self.self_attention, self.self_attention_residual = self._build_attention(
            "self_attention", inputs_shape, inputs_shape
        )
        self.cross_attention, self.cross_attention_residual = self._build_attention(
            "cross_attention", inputs_shape, memory_shape
        )
        self.feed_forward, self.feed_forward_residual = self._build_feed_forward(
            inputs_shape
        )

    def call(
        self,
        inputs,
        memory,
        inputs_mask=None,
        memory_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        scores = []

        def self_attend(x):
            outputs, weights = self.self_attention(
                query=x,
                value=x,
                query_mask=inputs_mask,
                value_mask=inputs_mask,
                use_causal_mask=True,
                return_attention_scores=True,
                training=training,
            )
            scores.append(weights)
            return outputs

        def cross_attend(x):
            outputs, weights = self.cross_attention(
                query=x,
                value=memory,
                query_mask=inputs_mask,
                value_mask=memory_mask,
                return_attention_scores=True,
                training=training,
            )
            scores.append(weights)
            return outputs

        outputs = self._compose(inputs, self_attend, cross_attend, training)
        return (outputs, *scores) if return_attention_scores else outputs

    def _compose(self, x, self_attend, cross_attend, training=None):
        """The layer's three steps; whole sequences and single tokens share them."""

        def feed_forward(x):
            return self.feed_forward(x, training=training)

        x = self.self_attention_residual(x, sublayer=self_attend, training=training)
        x = self.cross_attention_residual(x, sublayer=cross_attend, training=training)
        return self.feed_forward_residual(x, sublayer=feed_forward, training=training)

    def start_cache(self, memory, max_length):
        """What `step` needs of the past: nothing yet, and the memory's projections.

        Args:
            memory: float tensor (B, S, D).
            max_length: int or int32 scalar. Number of positions (L) kept.
        Returns:
            Dict of tensors: "self_key", "self_value" (B, N, L, H), all zeros, and
            "cross_key", "cross_value" (B, N, S, H).
        """
        batch = ops.shape(memory)[0]
        attention = self.self_attention
        sizes = {"self_key": attention.key_dim, "self_value": attention.value_dim}
        cache = {
            name: ops.zeros(
                (batch, self.num_heads, max_length, size), dtype=self.compute_dtype
            )
            for name, size in sizes.items()
        }
        cache["cross_key"] = self.cross_attention.project_key(memory)
        cache["cross_value"] = self.cross_attention.project_value(memory)
        return cache

    def step(self, inputs, cache, index, memory_mask=None):
        """The layer's output at one position, given the positions before it.

        Args:
            inputs: float tensor (B, 1, D).
            cache: dict from `start_cache`, or from the step before.
            index: int or int32 scalar. The position, 0 first.
            memory_mask: bool tensor (B, S) or None.
        Returns:
            Outputs (B, 1, D), and the cache with this position in it.
        Raises:
            ValueError: if `index` is a Python int past the end of the cache.
        """
        length = cache["self_key"].shape[2]
        if isinstance(index, int) and length is not None and not 0 <= index < length:
            raise ValueError(
                f"`index` must be a position of the cache, which holds {length}. "
                f"Received: index={index}"
            )
        cache = dict(cache)
        masks = {
            "past": _up_to(index, ops.shape(cache["self_key"])[2]),  # (1, 1, L)
            "memory": None if memory_mask is None else ops.expand_dims(memory_mask, 1),
        }

        def self_attend(x):
            attention, place = self.self_attention, (0, 0, index, 0)
            for name, new in (
                ("self_key", attention.project_key(x)),
                ("self_value", attention.project_value(x)),
            ):
                cache[name] = ops.slice_update(cache[name], place, new)
            return attention.attend(
                attention.project_query(x),
                cache["self_key"],
                cache["self_value"],
                masks["past"],
            )[0]

        def cross_attend(x):
            attention = self.cross_attention
            return attention.attend(
                attention.project_query(x),
                cache["cross_key"],
                cache["cross_value"],
                masks["memory"],
            )[0]

        return self._compose(inputs, self_attend, cross_attend), cache


def _up_to(index, length):
    """(1, 1, L) mask of the positions 0..index."""
    positions = ops.expand_dims(ops.expand_dims(ops.arange(length), 0), 0)
    return ops.less_equal(positions, index)
