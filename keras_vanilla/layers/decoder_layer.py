"""One layer of the decoder, for whole sequences or one token at a time."""

import operator

import keras
import numpy as np
from keras import ops

from keras_vanilla._operators import slice_update
from keras_vanilla._types import Tensor
from keras_vanilla.layers.attention_masks import padding_mask
from keras_vanilla.layers.layer import check_same_sizes
from keras_vanilla.layers.transformer_layer import (
    TransformerLayer,
    is_padding_mask,
    is_sequence,
)


@keras.saving.register_keras_serializable(package="keras_vanilla")
class DecoderLayer(TransformerLayer):
    """Masked self-attention, cross-attention, then the feed-forward network.

        x = LayerNorm(x + MaskedSelfAttention(x))
        x = LayerNorm(x + CrossAttention(x, memory))    <- K = V = the encoder's output
        x = LayerNorm(x + FFN(x))

    with dropout on each sub-layer's output before the addition. Position t attends to
    positions 0..t. Padding of either sequence is never attended to; the mask of
    `inputs` is passed on. `call` takes the whole target; `start_cache` and `step`
    compute the same one position at a time. For a decoder without an encoder, use
    `EncoderLayer` with `use_causal_mask`.

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
        inputs: float tensor (B, T, D).
        memory: float tensor (B, S, D). The encoder's output.
        inputs_mask: bool tensor (B, T). Keras fills it from `inputs`.
        memory_mask: bool tensor (B, S). Keras fills it from `memory`.
        return_attention_scores: bool. Return both attentions' weights as well.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype; with
        `return_attention_scores` also the weights (B, N, T, T) and (B, N, T, S).
    Raises:
        TypeError: if an argument is unknown, or `d_ff` is missing.
        ValueError: if a size is not positive, `memory` is missing, or its batch size
            is known and differs from that of the inputs; when built, if `key_dim` is
            None and d_model is not divisible by `num_heads`; if a step has more than
            one position, or an index past the end of the cache.
    Example:
        >>> layer = DecoderLayer(num_heads=2, d_ff=16)
        >>> target = np.ones((1, 3, 8), "float32")
        >>> memory = np.ones((1, 5, 8), "float32")
        >>> tuple(layer(target, memory).shape)
        (1, 3, 8)

    Source: Vaswani et al. 2017, section 3.1.
    """

    PAST = ("self_key", "self_value")  # the entries of the cache that each step extends

    def build(self, inputs_shape, memory_shape=None):
        _check_memory(memory_shape)
        self._width, self._memory_width = inputs_shape[-1], memory_shape[-1]
        self.self_attention, self.self_attention_residual = self._build_attention(
            "self_attention", inputs_shape, inputs_shape
        )
        self.cross_attention, self.cross_attention_residual = self._build_attention(
            "cross_attention", inputs_shape, memory_shape
        )
        self.feed_forward, self.feed_forward_residual = self._build_feed_forward(
            inputs_shape
        )

    def _is_usual_call(
        self,
        inputs,
        memory=None,
        inputs_mask=None,
        memory_mask=None,
        training=None,
        **unusual,
    ):
        return (
            type(self) is DecoderLayer
            and not unusual
            and is_sequence(inputs, self._width)
            and is_sequence(memory, self._memory_width)
            and memory.shape[0] == inputs.shape[0]
            and is_padding_mask(inputs_mask, inputs)
            and is_padding_mask(memory_mask, memory)
        )

    def call(
        self,
        inputs,
        memory=None,
        inputs_mask=None,
        memory_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        _check_memory(memory)
        check_same_sizes(("batch",), inputs=inputs, memory=memory)
        settings = {"query_mask": inputs_mask, "training": training}
        query = self.self_attention_residual.before(inputs)
        outputs, self_weights = self._attend(
            self.self_attention,
            query,
            query,
            return_attention_scores,
            value_mask=inputs_mask,
            use_causal_mask=True,
            **settings,
        )
        x = self.self_attention_residual.after(inputs, outputs, training=training)

        query = self.cross_attention_residual.before(x)
        outputs, cross_weights = self._attend(
            self.cross_attention,
            query,
            memory,
            return_attention_scores,
            value_mask=memory_mask,
            **settings,
        )
        x = self.cross_attention_residual.after(x, outputs, training=training)

        x = self._apply_feed_forward(x, training)
        return (x, self_weights, cross_weights) if return_attention_scores else x

    def start_cache(self, memory: Tensor, max_length: Tensor | int) -> dict:
        """Creates an empty cache for `step`, with the memory's keys and values.

        Args:
            memory: float tensor (B, S, D).
            max_length: int or int32 scalar. Number of positions (L) kept.
        Returns:
            Dict of tensors: "self_key", "self_value" (B, N, L, H), all zeros, and
            "cross_key", "cross_value" (B, N, S, H).
        Raises:
            ValueError: if the layer is not built.
        """
        self._check_built()
        past = self.self_attention.start_cache(ops.shape(memory)[0], max_length)
        return {
            "self_key": past["key"],
            "self_value": past["value"],
            "cross_key": self.cross_attention.project_key(memory),
            "cross_value": self.cross_attention.project_value(memory),
        }

    def step(
        self,
        inputs: Tensor,
        cache: dict,
        index: Tensor | int,
        memory_mask: Tensor | None = None,
        past_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        past_grows: bool = False,
    ) -> tuple:
        """The layer's output at one position, given the positions before it.

        With a `past_mask`, the inputs are K hypotheses at this position. The cache has
        length L K, with the K entries of each position next to each other.

        Args:
            inputs: float tensor (B, 1, D), or (B, K, D).
            cache: dict from `start_cache` or from the previous step.
            index: int or int32 scalar. The position, starting at 0.
            memory_mask: bool tensor (B, S) or None.
            past_mask: bool tensor (B, K, L K) or None. The entries that belong to each
                hypothesis, including this position.
            return_attention_scores: bool. Return both attentions' weights as well.
            past_grows: bool. The cache holds only the positions before this one: it
                started with length 0, and this position is appended.
        Returns:
            Outputs of the inputs' shape, and the cache with this position added; with
            `return_attention_scores` also the weights (B, N, 1 or K, L or L K) and
            (B, N, 1 or K, S).
        Raises:
            ValueError: if there is more than one position, the cache has a different
                number of rows, or `index` is a Python or NumPy integer past the end of
                the cache.
        """
        check_same_sizes(("batch",), inputs=inputs, self_key=cache["self_key"])
        beams = 1 if past_mask is None else past_mask.shape[1]
        length = None if past_grows else cache["self_key"].shape[2]
        _check_step(inputs, index, beams, length and length // beams)
        position = None if past_grows else index * beams
        x, cache, self_weights = self._attend_to_past(
            inputs, cache, index, position, past_mask, return_attention_scores
        )
        x, cross_weights = self._attend_to_memory(
            x, cache, index, memory_mask, return_attention_scores
        )
        x = self._apply_feed_forward(x)
        weights = (self_weights, cross_weights) if return_attention_scores else ()
        return x, cache, *weights

    def _attend_to_past(self, inputs, cache, index, position, past_mask, with_weights):
        """The step's first sub-layer; also returns the cache with this position."""
        attention, residual = self.self_attention, self.self_attention_residual
        query = residual.before(inputs)
        query, key, value = attention.project(query, query, query)
        key = _with_new(cache["self_key"], key, position)
        value = _with_new(cache["self_value"], value, position)
        cache = {**cache, "self_key": key, "self_value": value}
        if past_mask is not None:
            mask = ops.expand_dims(past_mask, 1)
        else:
            mask = None if position is None else _up_to(index, ops.shape(key)[2])
        heads = query, key, value, mask
        outputs, weights = _step_attention(attention, heads, index, with_weights)
        return residual.after(inputs, outputs), cache, weights

    def _attend_to_memory(self, inputs, cache, index, memory_mask, with_weights):
        """The step's second sub-layer."""
        attention, residual = self.cross_attention, self.cross_attention_residual
        key, value = cache["cross_key"], cache["cross_value"]
        query = attention.project_query(residual.before(inputs))
        shape = key.shape[0], key.shape[2]
        mask = padding_mask("memory_mask", memory_mask, shape, axes=(1, 2))
        heads = query, key, value, mask
        outputs, weights = _step_attention(attention, heads, index, with_weights)
        return residual.after(inputs, outputs), weights


def _with_new(past, new, position):
    """Writes `new` into the past (B, N, L, H) at `position`; None appends it."""
    if position is None:
        return ops.concatenate([past, new], axis=2)
    return slice_update(past, (0, 0, position, 0), new)


def _step_attention(attention, heads, index, with_weights):
    """The outputs of a step's attention, and its weights or None."""
    settings = {"training": False, "index": index}
    if with_weights:
        return attention.attend_with_weights(*heads, **settings)
    return attention.attend(*heads, **settings), None


def _check_memory(memory):
    """Refuses a missing `memory` or memory shape."""
    if memory is None:
        raise ValueError(
            "DecoderLayer attends to an encoder's output: call it as "
            "layer(inputs, memory). Without an encoder use "
            "EncoderLayer(...)(inputs, use_causal_mask=True)."
        )


def _check_step(inputs, index, beams, length):
    if inputs.shape[1] not in (None, beams):
        raise ValueError(
            "A step takes one position, (B, 1, D). Received inputs of shape "
            f"{tuple(inputs.shape)}; `layer(inputs, memory)` takes whole sequences."
        )
    if length is None or not isinstance(index, (int, np.integer, np.ndarray)):
        return
    if not 0 <= operator.index(index) < length:
        raise ValueError(
            f"`index` must be a position of the cache, which holds {length}. "
            f"Received: index={index}"
        )


def _up_to(index, length):
    """(1, 1, 1, L) mask of the positions 0..index."""
    positions = ops.arange(length)
    for _ in range(3):
        positions = ops.expand_dims(positions, 0)
    return ops.less_equal(positions, index)
