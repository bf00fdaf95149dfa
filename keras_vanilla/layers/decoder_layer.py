"""One layer of the decoder, for whole sequences and for one token at a time."""

import keras
from keras import ops

from keras_vanilla._types import Tensor
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
        seed: int or None. Of all its dropouts, each of which draws its own numbers.
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

    CACHE_NAMES = ("self_key", "self_value", "cross_key", "cross_value")

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
        settings = {
            "query_mask": inputs_mask,
            "return_attention_scores": return_attention_scores,
            "training": training,
        }
        query = self.self_attention_residual.before(inputs)
        outputs, self_weights = self._attend(
            self.self_attention,
            query,
            query,
            value_mask=inputs_mask,
            use_causal_mask=True,
            **settings,
        )
        x = self.self_attention_residual.after(inputs, outputs, training=training)

        query = self.cross_attention_residual.before(x)
        outputs, cross_weights = self._attend(
            self.cross_attention, query, memory, value_mask=memory_mask, **settings
        )
        x = self.cross_attention_residual.after(x, outputs, training=training)

        x = self._apply_feed_forward(x, training)
        return (x, self_weights, cross_weights) if return_attention_scores else x

    def start_cache(self, memory: Tensor, max_length: Tensor | int) -> dict:
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

    def step(
        self,
        inputs: Tensor,
        cache: dict,
        index: Tensor | int,
        memory_mask: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
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
        x, attention = inputs, self.self_attention
        query = self.self_attention_residual.before(x)
        place = (0, 0, index, 0)
        key, value = attention.project_key(query), attention.project_value(query)
        cache = {
            **cache,
            "self_key": ops.slice_update(cache["self_key"], place, key),
            "self_value": ops.slice_update(cache["self_value"], place, value),
        }
        outputs = attention.attend(
            attention.project_query(query),
            cache["self_key"],
            cache["self_value"],
            _up_to(index, ops.shape(cache["self_key"])[2]),  # (1, 1, L)
            training=False,
        )
        x = self.self_attention_residual.after(x, outputs)

        attention = self.cross_attention
        outputs = attention.attend(
            attention.project_query(self.cross_attention_residual.before(x)),
            cache["cross_key"],
            cache["cross_value"],
            None if memory_mask is None else ops.expand_dims(memory_mask, 1),
            training=False,
        )
        x = self.cross_attention_residual.after(x, outputs)
        return self._apply_feed_forward(x), cache


def _up_to(index, length):
    """(1, 1, L) mask of the positions 0..index."""
    positions = ops.expand_dims(ops.expand_dims(ops.arange(length), 0), 0)
    return ops.less_equal(positions, index)
