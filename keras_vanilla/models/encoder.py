"""The encoder: source ids to the memory that the decoder attends to."""

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.layers import EncoderLayer, PositionalEncoding, TokenEmbedding


class Encoder:
    """Maps source ids to the memory.

        memory = EncoderLayer_N(... EncoderLayer_1(embed(source) + PE))

    A plain object that owns its layers; `Transformer` tracks and saves them.

    Args:
        embedding: TokenEmbedding of the source.
        positions: PositionalEncoding.
        layers: list of EncoderLayer.
        norm: LayerNormalization after the last layer, or None.
        hidden_id: int or None. An id that is masked like padding.
    Call arguments:
        source_ids: int tensor (B, S).
        attention_weights: dict that receives the weights of layer i (B, N, S, S) under
            "encoder/i"; with None they are not computed.
    Returns:
        The memory (B, S, D), and its mask: bool (B, S), True = a real token.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        positions: PositionalEncoding,
        layers: list[EncoderLayer],
        norm: keras.layers.Layer | None = None,
        hidden_id: int | None = None,
    ):
        self.embedding = embedding
        self.positions = positions
        self.layers = layers
        self.norm = norm
        self.hidden_id = hidden_id

    def __call__(
        self, source_ids: Tensor, attention_weights: dict | None = None
    ) -> tuple[Tensor, Tensor]:
        mask = ops.not_equal(source_ids, self.embedding.pad_id)
        if self.hidden_id is not None:
            mask = ops.logical_and(mask, ops.not_equal(source_ids, self.hidden_id))
        x = self.positions(self.embedding(source_ids))  # (B, S) -> (B, S, D)
        for i, layer in enumerate(self.layers):
            if attention_weights is None:
                x = layer(x, mask=mask)
            else:
                x, weights = layer(x, mask=mask, return_attention_scores=True)
                attention_weights[f"encoder/{i}"] = weights
        return (x if self.norm is None else self.norm(x)), mask
