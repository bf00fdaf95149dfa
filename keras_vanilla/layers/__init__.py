"""The Transformer's parts as Keras layers, written in `keras.ops` only.

In shapes, B is the batch, T and S are the tokens of the queries (or the target) and of
the values (or the source), D is the width of the model, N the number of heads, H the
size of a head, F the inner width of the feed-forward network and V the vocabulary.
"""

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
