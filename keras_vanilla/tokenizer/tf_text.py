"""SentencePiece inside TensorFlow graphs, with tensorflow-text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_vanilla._checks import extra_missing
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


def encode_tokens(
    model: bytes,
    strings: "Sequence[str] | tf.Tensor",
    size: int,
    special: SpecialIds,
    code: str | None,
    reads_codes: bool,
) -> "tf.RaggedTensor":
    """Ids of strings as in `MarianTokenizer`; the result is as in `encode`.

    Args:
        model: bytes of a model whose piece i is token i.
        strings: string tensor (B,) or list of str.
        size: int. Number of tokens.
        special: SpecialIds.
        code: str or None. The token in front of every string that has a piece; with
            None, strings may start with codes.
        reads_codes: bool. Whether codes in strings are read.
    """
    import tensorflow as tf

    strings = tf.ensure_shape(tf.convert_to_tensor(strings, tf.string), [None])
    tokenizer = _tokenizer(model, tf.string)
    if reads_codes:
        pieces = _codes_and_pieces(tokenizer, strings, code)
    else:
        pieces = tokenizer.tokenize(strings)
    ids = tokenizer.string_to_id(pieces.flat_values)
    for id_ in (special.pad_id, special.start_id, special.end_id):
        ids = tf.where(ids == id_, special.unknown_id, ids)
    ids = pieces.with_flat_values(tf.where(ids < size, ids, special.unknown_id))
    end = tf.fill([tf.size(strings), 1], special.end_id)
    return tf.concat([ids, end], axis=1)


def _codes_and_pieces(tokenizer, strings, code):
    """The code of each string, given or at its beginning, and then its pieces."""
    import tensorflow as tf

    if code is None:
        has_code = tf.strings.regex_full_match(strings, "(?s)>>.*?<<.*")
        codes = tf.strings.regex_replace(strings, "(?s)(>>.*?<<).*", r"\1")
        rests = tf.strings.regex_replace(strings, "(?s)^>>.*?<<", "")
        pieces = tokenizer.tokenize(tf.where(has_code, rests, strings))
    else:
        pieces = tokenizer.tokenize(strings)
        has_code = pieces.row_lengths() > 0
        codes = tf.fill([tf.size(strings)], code)
    codes = tf.ragged.boolean_mask(codes[:, tf.newaxis], has_code[:, tf.newaxis])
    return tf.concat([codes, pieces], axis=1)


def decode(model: bytes, ids: "tf.Tensor", special: SpecialIds) -> "tf.Tensor":
    """Texts (B,) of ids (B, L), a string tensor, as in `Tokenizer.decode`."""
    import tensorflow as tf

    ids = tf.ensure_shape(tf.convert_to_tensor(ids, tf.int32), [None, None])
    ended = tf.cumsum(tf.cast(ids == special.end_id, tf.int32), axis=1) > 0
    kept = ~ended & (ids != special.pad_id) & (ids != special.start_id)
    tokenizer = _tokenizer(model)
    ids = tf.where(ids < tokenizer.vocab_size(), ids, special.unknown_id)
    texts = tokenizer.detokenize(tf.ragged.boolean_mask(ids, kept))
    return tf.strings.regex_replace(texts, "^(?:\ufffd+ ?)+|\ufffd", "")


def _tokenizer(model, out_type=None):
    """A new tokenizer per graph; TensorFlow drops old ones when a seed is set."""
    import tensorflow as tf

    try:
        import tensorflow_text
    except ModuleNotFoundError as error:
        raise extra_missing(
            "Tokenizers in TensorFlow graphs", "tensorflow-text", "text"
        ) from error
    return tensorflow_text.SentencepieceTokenizer(model, out_type=out_type or tf.int32)
