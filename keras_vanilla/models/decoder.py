"""The decoder: target ids and memory to logits of the next tokens."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vanilla._operators import slice_update
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.cache import Cache, GrowingCache
from keras_vanilla.layers import (
    DecoderLayer,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)


class Decoder:
    """Maps target ids and the memory to logits, at once or token by token.

        logits = DecoderLayer_N(... DecoderLayer_1(embed(target) + PE, memory)) E^T

    A plain object that owns its layers; `Transformer` tracks and saves them. `__call__`
    takes the whole target; `start_cache` and `step` compute the same one position at a
    time, over a `Cache`.

    Args:
        embedding: TokenEmbedding of the target.
        positions: PositionalEncoding.
        layers: list of DecoderLayer.
        norm: LayerNormalization after the last layer, or None.
        output: TokenEmbedding whose table is the output projection; None means the
            target's embedding.
        bias: layer that adds a bias to the logits, or None.
    Call arguments:
        target_ids: int tensor (B, T).
        memory: float tensor (B, S, D).
        memory_mask: bool tensor (B, S).
        attention_weights: dict that receives the weights of layer i under
            "decoder/i/self" (B, N, T, T) and "decoder/i/cross" (B, N, T, S); with None
            they are not computed.
    Returns:
        Float32 logits (B, T, V).
    Source: Vaswani et al. 2017, sections 3.1 and 3.4.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        positions: PositionalEncoding,
        layers: list[DecoderLayer],
        norm: keras.layers.Layer | None = None,
        output: TokenEmbedding | None = None,
        bias: keras.layers.Layer | None = None,
    ):
        self.embedding = embedding
        self.positions = positions
        self.layers = layers
        self.norm = norm
        self.output = output or embedding
        self.bias = bias

    def __call__(
        self,
        target_ids: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        attention_weights: dict | None = None,
    ) -> Tensor:
        masks = {
            "inputs_mask": _target_mask(target_ids, self.embedding.pad_id),
            "memory_mask": memory_mask,
        }
        x = self.positions(self.embedding(target_ids))  # (B, T) -> (B, T, D)
        for i, layer in enumerate(self.layers):
            if attention_weights is None:
                x = layer(x, memory, **masks)
            else:
                x, *weights = layer(x, memory, **masks, return_attention_scores=True)
                _write_weights(attention_weights, i, *weights)
        return self._logits(x)

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor | None,
        max_length: Tensor | int | None,
        beam_size: int | None = None,
    ) -> Cache:
        """Creates the cache for the first call of `step`.

        Args:
            memory: float tensor (B, S, D).
            memory_mask: bool tensor (B, S).
            max_length: int or int32 scalar. Number of positions (L) kept. None creates
                a `GrowingCache`, if `shares_beams` is true.
            beam_size: int or None. Number of hypotheses (K) per row, which `step`
                extends at once, if `shares_beams` is true. The cache holds the keys
                and values of all, (B, N, L K, H), and "ancestors" (B, K, L K): bool,
                True for entries that belong to a hypothesis.
        """
        grows = max_length is None
        if grows:  # not a constant, whose shape would be fixed in a compiled loop
            max_length = 0 * ops.shape(memory)[1]
        length = max_length * (beam_size or 1)
        layers = [layer.start_cache(memory, length) for layer in self.layers]
        cache = self.cache_of(layers, memory_mask)
        if beam_size is not None:
            shape = ops.shape(memory)[0], beam_size, length
            cache = cache._replace(ancestors=ops.zeros(shape, dtype="bool"))
        return GrowingCache(*cache) if grows else cache

    def cache_of(self, layers: Sequence[dict], memory_mask: Tensor | None) -> Cache:
        """Combines the layers' caches into one, for one hypothesis per row.

        Args:
            layers: dicts from `DecoderLayer.start_cache`, one per layer.
            memory_mask: bool tensor (B, S).
        """
        past, fixed = [], []
        for layer, cache in zip(self.layers, layers, strict=True):
            past.append({name: cache[name] for name in layer.PAST})
            fixed.append({n: x for n, x in cache.items() if n not in layer.PAST})
        return Cache(tuple(past), tuple(fixed), memory_mask)

    @property
    def shares_beams(self) -> bool:
        """True if one cache can hold all hypotheses of a row.

        A custom attention may rely on the order of positions in the cache, so this is
        false for it.
        """
        return all(
            type(layer).step is DecoderLayer.step
            and type(layer).start_cache is DecoderLayer.start_cache
            and all(
                isinstance(attention, MultiHeadAttention) and not attention.is_extended
                for attention in (layer.self_attention, layer.cross_attention)
            )
            for layer in self.layers
        )

    def step(
        self,
        ids: Tensor,
        index: Tensor | int,
        cache: Cache,
        attention_weights: dict | None = None,
    ) -> tuple[Tensor, Cache]:
        """Runs the decoder at one position and returns logits of the next token.

        Args:
            ids: int tensor (B,), or (B, K) for a cache of K hypotheses. The tokens at
                position `index`.
            index: int or int32 scalar. 0 for the start token.
            cache: Cache from `start_cache` or from the previous step.
            attention_weights: dict that receives the weights of every attention, named
                as in `Transformer.attention_weights`; or None.
        Returns:
            Float32 logits (B, V) or (B, K, V), and the cache with this position added.
        """
        settings, ancestors = {}, cache.ancestors
        position = cache.position_of(index)
        if isinstance(cache, GrowingCache):
            settings["past_grows"] = True
        if cache.is_shared:
            ancestors = _with_new_entries(ancestors, position, **settings)
            settings["past_mask"] = ancestors
        x = self.embedding(ops.reshape(ids, (-1, 1)))  # -> (B, 1, D), or (B K, 1, D)
        x = self.positions(x, start_index=index)
        if cache.is_shared:
            x = ops.reshape(x, (*ops.shape(ids), x.shape[2]))
        if attention_weights is not None:
            settings["return_attention_scores"] = True
        layers = []
        for i, layer in enumerate(self.layers):
            layer_cache = {**cache.past[i], **cache.fixed[i]}
            x, layer_cache, *weights = layer.step(
                x, layer_cache, position, cache.memory_mask, **settings
            )
            layers.append(layer_cache)
            if weights:
                _write_weights(attention_weights, i, *weights)
        logits = self._logits(x)
        logits = logits if cache.is_shared else ops.squeeze(logits, 1)
        after = self.cache_of(layers, cache.memory_mask)
        return logits, cache._replace(
            past=after.past, fixed=after.fixed, ancestors=ancestors
        )

    def _logits(self, hidden):
        """Maps the outputs of the last layer (B, T, D) to logits (B, T, V)."""
        hidden = hidden if self.norm is None else self.norm(hidden)
        logits = self.output(hidden, reverse=True)
        return logits if self.bias is None else self.bias(logits)


def _write_weights(attention_weights, layer, self_weights, cross_weights):
    attention_weights[f"decoder/{layer}/self"] = self_weights
    attention_weights[f"decoder/{layer}/cross"] = cross_weights


def _with_new_entries(ancestors, index, past_grows=False):
    """Marks each hypothesis's entry at a position in the ancestors (B, K, L K)."""
    batch, beams = ops.shape(ancestors)[:2]
    entries = ops.broadcast_to(ops.eye(beams, dtype="bool"), (batch, beams, beams))
    if past_grows:
        return ops.concatenate([ancestors, entries], axis=2)
    return slice_update(ancestors, (0, 0, index * beams), entries)


def _target_mask(target_ids, pad_id):
    """(B, T) mask of real tokens; the first token is real even if it is the pad id."""
    first = ops.ones_like(target_ids[:, :1], dtype="bool")
    rest = ops.not_equal(target_ids[:, 1:], pad_id)
    return ops.concatenate([first, rest], axis=1)
