"""SentencePiece inside TensorFlow graphs, by tensorflow-text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_vanilla.tokenizer.special_ids import SpecialIds

if TYPE_CHECKING:
    import tensorflow as tf


def encode(
    model: bytes, strings: "Sequence[str] | tf.Tensor", end_id: int
) -> "tf.RaggedTensor":
    """Ids of strings: a ragged int32 tensor (B, None), `end_id` last in every row."""
    import tensorflow as tf

    strings = tf.ensure_shape(tf.convert_to_tensor(strings, tf.string), [None])
    end = tf.fill([tf.size(strings), 1], end_id)
    return tf.concat([_tokenizer(model).tokenize(strings), end], axis=1)


def decode(model: bytes, ids: "tf.Tensor", special: SpecialIds) -> "tf.Tensor":
    """Text of ids (B, L): a string tensor (B,), cut at each row's first end."""
    import tensorflow as tf

    ids = tf.ensure_shape(tf.convert_to_tensor(ids, tf.int32), [None, None])
    ended = tf.cumsum(tf.cast(ids == special.end_id, tf.int32), axis=1) > 0
    kept = ~ended & (ids != special.pad_id) & (ids != special.start_id)
    tokenizer = _tokenizer(model)
    ids = tf.where(ids < tokenizer.vocab_size(), ids, special.unknown_id)
    return tokenizer.detokenize(tf.ragged.boolean_mask(ids, kept))


def _tokenizer(model):
    """A new one per graph: TensorFlow drops a kept one when a random seed is set."""
    import tensorflow as tf
    import tensorflow_text

    return tensorflow_text.SentencepieceTokenizer(model, out_type=tf.int32)
