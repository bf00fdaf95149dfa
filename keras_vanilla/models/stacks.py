"""Encoder and decoder: the layers they are made of, and the data's way through them.

`parts` is anything with the arguments of a `Transformer` as attributes and, once they
are made, its layers: at first a plain namespace, then the model itself.
"""

import keras
from keras import ops

from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    PositionalEncoding,
    TokenEmbedding,
)


def make_embeddings(parts, initial, policy):
    """The table or tables, the positions and, if asked for, the output's bias."""

    def table(side, value, name):
        return TokenEmbedding(
            getattr(parts, f"{side}_vocabulary_size"),
            parts.d_model,
            pad_id=parts.pad_id,
            scale=parts.scale_embeddings,
            embeddings=value,
            name=name,
            dtype=policy,
        )

    if parts.share_embeddings:
        source = target = table("source", initial, "embedding")
    else:
        values = (None, None) if initial is None else initial
        source = table("source", values[0], "source_embedding")
        target = table("target", values[1], "target_embedding")
    return {
        "source_embedding": source,
        "target_embedding": target,
        "positions": PositionalEncoding(
            layout=parts.position_layout,
            dropout=parts.dropout,
            name="positions",
            dtype=policy,
        ),
        "logits_bias": _Bias(name="logits_bias", dtype="float32")
        if parts.output_bias
        else None,
    }


def make_stacks(parts, policy):
    """The layers of encoder and decoder, and pre-norm's last normalisations."""

    def stack(layer_class, name, depth):
        return [
            layer_class(
                parts.num_heads,
                parts.d_ff,
                dropout=parts.dropout,
                attention_dropout=parts.attention_dropout,
                activation=parts.activation,
                normalize_first=parts.normalize_first,
                layer_norm_epsilon=parts.layer_norm_epsilon,
                name=f"{name}_{i}",
                dtype=policy,
            )
            for i in range(depth)
        ]

    def last_norm(name):
        if not parts.normalize_first:
            return None
        return keras.layers.LayerNormalization(
            epsilon=parts.layer_norm_epsilon, name=name, dtype=policy
        )

    return {
        "encoder_layers": stack(
            EncoderLayer, "encoder_layer", parts.num_encoder_layers
        ),
        "encoder_norm": last_norm("encoder_norm"),
        "decoder_layers": stack(
            DecoderLayer, "decoder_layer", parts.num_decoder_layers
        ),
        "decoder_norm": last_norm("decoder_norm"),
    }


def encode(parts, source_ids, weights=None):
    """The memory (B, S, D) of source ids (B, S), and its mask (B, S).

    `weights` is a dict that takes each attention's weights by name, or None.
    """
    mask = ops.not_equal(source_ids, parts.pad_id)
    x = parts.positions(parts.source_embedding(source_ids))  # (B, S) -> (B, S, D)
    for i, layer in enumerate(parts.encoder_layers):
        x, scores = layer(x, mask=mask, return_attention_scores=True)
        if weights is not None:
            weights[f"encoder/{i}"] = scores
    return (x if parts.encoder_norm is None else parts.encoder_norm(x)), mask


def decode(parts, target_ids, memory, memory_mask, weights=None):
    """The logits (B, T, V) of target ids (B, T); `weights` as in `encode`."""
    mask = _target_mask(target_ids, parts.pad_id)
    x = parts.positions(parts.target_embedding(target_ids))  # (B, T) -> (B, T, D)
    for i, layer in enumerate(parts.decoder_layers):
        x, self_scores, cross_scores = layer(
            x,
            memory,
            inputs_mask=mask,
            memory_mask=memory_mask,
            return_attention_scores=True,
        )
        if weights is not None:
            weights[f"decoder/{i}/self"] = self_scores
            weights[f"decoder/{i}/cross"] = cross_scores
    return project(parts, x)


def project(parts, hidden):
    """The logits (B, T, V) of the decoder's last hidden states (B, T, D)."""
    if parts.decoder_norm is not None:
        hidden = parts.decoder_norm(hidden)
    logits = parts.target_embedding(hidden, reverse=True)  # (B, T, D) -> (B, T, V)
    return logits if parts.logits_bias is None else parts.logits_bias(logits)


def _target_mask(target_ids, pad_id):
    """(B, T) mask of real tokens; the first is one even where it is the pad id."""
    first = ops.ones_like(target_ids[:, :1], dtype="bool")
    rest = ops.not_equal(target_ids[:, 1:], pad_id)
    return ops.concatenate([first, rest], axis=1)


class _Bias(keras.layers.Layer):
    """Adds one number to each logit."""

    def build(self, input_shape):
        self.bias = self.add_weight(
            name="bias", shape=(input_shape[-1],), initializer="zeros"
        )

    def call(self, inputs):
        return inputs + self.bias
