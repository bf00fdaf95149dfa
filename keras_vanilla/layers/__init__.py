"""The Transformer's parts as Keras layers, written in `keras.ops` only."""

from keras_vanilla.layers.decoder_layer import DecoderLayer
from keras_vanilla.layers.encoder_layer import EncoderLayer
from keras_vanilla.layers.feed_forward import FeedForward
from keras_vanilla.layers.multi_head_attention import MultiHeadAttention
from keras_vanilla.layers.positional_encoding import PositionalEncoding
from keras_vanilla.layers.token_embedding import TokenEmbedding

__all__ = [
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "MultiHeadAttention",
    "PositionalEncoding",
    "TokenEmbedding",
]
