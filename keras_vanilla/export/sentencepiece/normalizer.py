"""Normalises text like SentencePiece in a TensorFlow graph."""

import numpy as np
import tensorflow as tf

from keras_vanilla.export.sentencepiece.pointer_jumping import follow_jumps
from keras_vanilla.export.sentencepiece.trie import FREE, ByteTrie, narrow
from keras_vanilla.export.sentencepiece.unigram_model import SPACE_MARK, UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import (
    LONGEST_CHARACTER,
    REPLACEMENT,
    character_lengths,
)

MALFORMED = 0
SPACE = 1 + LONGEST_CHARACTER
MARK = SPACE + 1
# Bit fields of a unit of darts-clone's double array.
IS_VALUE, BROAD, HAS_VALUE = 1 << 31, 1 << 9, 1 << 8


class NormalizationRules:
    """The rules that rewrite the bytes at one position of a text, by number.

        0             replace a malformed byte by U+FFFD
        1 to 4        keep a character of that many bytes
        5, 6          keep a space, keep a space mark
        from 7        replace the longest matching key of the character map
        the last      keep a user-defined symbol

    If several rules match, the one with the highest number is used.

    Args:
        model: UnigramModel.
    Attributes:
        tries: ByteTries of the rules from 5 on.
        outputs: uint8 array. The output bytes of all rules, joined.
        starts: int32 array (rules,). The start of each output in `outputs`.
        shapes: int array (rules, 4). For each output: the number of bytes, of leading
            spaces, and of bytes up to the last that is not a space; and whether it ends
            with a space.
        longest_key: int. Number of bytes of the longest key that has a rule.
    """

    def __init__(self, model: UnigramModel):
        symbols = [model.pieces[id_] for id_ in model.ids_of("USER_DEFINED")]
        # Only their shapes matter, because these rules keep the text.
        copies = [b"-" * length for length in range(1, LONGEST_CHARACTER + 1)]
        texts = [REPLACEMENT, *copies, b" ", SPACE_MARK]
        self.tries = []
        if model.spec.precompiled_charsmap:
            trie, replacements = _unpack(model.spec.precompiled_charsmap, len(texts))
            self.tries.append(trie)
            texts += replacements
        kept = {b" ": SPACE, SPACE_MARK: MARK}
        kept |= {symbol: n for n, symbol in enumerate(symbols, start=len(texts))}
        self.tries.append(ByteTrie.build(kept, missing=MALFORMED))
        texts += symbols
        self.longest_key = max(trie.longest() for trie in self.tries)
        marked = [text.replace(b" ", model.space) for text in texts]
        self.starts = np.cumsum([0, *map(len, marked[:-1])]).astype("int32")
        self.outputs = np.frombuffer(b"".join(marked), "uint8")
        strips = model.spec.remove_extra_whitespaces
        self.shapes = narrow([_shape(text, model.space, strips) for text in texts])


def _shape(text, space, strips):
    """Returns a row of `shapes`; unless spaces are stripped, all bytes are text."""
    marked = text.replace(b" ", space)
    if not strips:
        return len(marked), 0, len(marked), 0
    leading = len(text) - len(text.lstrip(b" "))
    solid = marked
    while solid.endswith(space):
        solid = solid.removesuffix(space)
    return len(marked), leading * len(space), len(solid), text.endswith(b" ")


def _unpack(charsmap, first_rule):
    """Returns the trie of a `precompiled_charsmap`, and one replacement per rule.

    The map consists of the byte size of a darts-clone double array, the array, and
    zero-terminated strings.
    """
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", count=size // 4, offset=4).astype("int64")
    strings = charsmap[4 + size :]
    base = np.arange(len(units)) ^ (units >> 10 << ((units & BROAD) >> 6))
    label = np.where(units & IS_VALUE, FREE, units & 0xFF)
    keys = np.flatnonzero(units & (IS_VALUE | HAS_VALUE) == HAS_VALUE)
    starts, rules = np.unique(units[base[keys]] & ~IS_VALUE, return_inverse=True)
    value = np.full(len(units), MALFORMED)
    value[keys] = first_rule + rules
    replacements = [strings[start : strings.index(b"\0", start)] for start in starts]
    return ByteTrie(base, label, value, MALFORMED), replacements


class Normalizer:
    """Maps UTF-8 bytes to the normalised bytes that SentencePiece segments.

    Args:
        model: UnigramModel.
    Call arguments:
        text_bytes: int32 tensor (n + 4,), bytes from 0 to 254, then four zeros.
    Returns:
        Int32 tensors (m + 1,): the bytes of the normalised text and a zero; and the
        position in the input that each of them comes from. The position of the zero is
        the end of the text without the stripped spaces.
    """

    def __init__(self, model: UnigramModel):
        self._rules = NormalizationRules(model)
        self._strips = int(model.spec.remove_extra_whitespaces)
        self._space = model.space
        prefix = model.space if model.spec.add_dummy_prefix else b""
        self._prefix = np.frombuffer(prefix, "uint8")

    def __call__(self, text_bytes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rules, ends = self._rules_at(text_bytes)
        length = tf.size(text_bytes) - LONGEST_CHARACTER
        # The positions where rules apply, then `length` repeated.
        positions = tf.range(tf.size(text_bytes))
        positions = follow_jumps(tf.minimum(ends, length), 0, positions)
        applied = tf.gather(rules, positions)
        sizes = tf.cast(tf.gather(self._rules.shapes[:, 0], applied), tf.int32)
        begin = self._begin(positions, applied, length)
        positions = positions[(positions < length) & (sizes > 0)]
        rules = tf.gather(rules, positions)
        sizes, leading, last, spaced = (
            tf.cast(tf.gather(column, rules), tf.int32)
            for column in self._rules.shapes.T
        )
        # The text is preceded by the prefix, a space.
        spaced = tf.pad(spaced, [[1, 0]], constant_values=self._strips)[:-1]
        skipped = leading * spaced
        solid = self._solid(sizes, skipped, last)
        text, origins = self._written(text_bytes, positions, rules, sizes, skipped)
        solid = tf.where(length > 0, solid, 0)
        text = tf.concat([self._prefix, text], axis=0)[:solid]
        origins = tf.concat([origins, length[None]], axis=0)
        prefix = tf.fill([len(self._prefix)], begin)
        origins = tf.concat([prefix, origins], axis=0)[: solid + 1]
        return tf.pad(tf.cast(text, tf.int32), [[0, 1]]), origins

    def _begin(self, positions, rules, length):
        """The start of the text, after leading spaces if they are stripped."""
        if not self._strips:
            return 0
        sizes, leading, _, _ = self._rules.shapes.T
        is_space = (sizes == leading) & (sizes == len(self._space))
        is_space = tf.gather(is_space, rules)
        return tf.reduce_min(tf.where(is_space, length, positions))

    def _solid(self, sizes, skipped, last):
        """The number of bytes before the stripped trailing spaces."""
        begins = tf.cumsum(sizes - skipped) - sizes + len(self._prefix)
        nothing = 0 if self._strips else len(self._prefix)
        return tf.maximum(nothing, tf.reduce_max(tf.where(last > 0, begins + last, 0)))

    def _written(self, text_bytes, positions, rules, sizes, skipped):
        """Joins the outputs of the rules, uint8; also returns each byte's source."""
        source = tf.concat([self._rules.outputs, tf.cast(text_bytes, tf.uint8)], axis=0)
        copies = (rules > MALFORMED) & (rules < SPACE)
        starts = tf.where(
            copies,
            positions + len(self._rules.outputs),
            tf.gather(self._rules.starts, rules),
        )
        offsets = tf.range(tf.maximum(1, tf.reduce_max(sizes)))
        starts, skipped, sizes = (
            tf.expand_dims(column, 1) for column in (starts, skipped, sizes)
        )
        used = (offsets >= skipped) & (offsets < sizes)
        origins = tf.broadcast_to(tf.expand_dims(positions, 1), tf.shape(used))
        return tf.gather(source, (starts + offsets)[used]), origins[used]

    def _rules_at(self, text_bytes):
        """Returns each position's rule, and the end of the bytes that it replaces.

        Both are int32 tensors (n + 4,).
        """
        rules = character_lengths(text_bytes)
        input_sizes = tf.maximum(rules, 1)
        for trie in self._rules.tries:
            trie_rules, lengths = self._longest_keys(trie, text_bytes)
            input_sizes = tf.where(trie_rules > rules, lengths, input_sizes)
            rules = tf.maximum(trie_rules, rules)
        return rules, tf.range(tf.size(text_bytes)) + input_sizes

    def _longest_keys(self, trie, text_bytes):
        """Returns value and length of the longest key at each position, or zeros."""
        values = trie.values(trie.walk(text_bytes, self._rules.longest_key))
        depth, size = tf.unstack(tf.shape(values))
        lengths = tf.range(1, depth + 1)[:, None]
        lengths = tf.reduce_max(tf.where(values > 0, lengths, 0), axis=0)
        rows = tf.maximum(lengths, 1) - 1
        flat = tf.reshape(values, [-1])
        return tf.gather(flat, rows * size + tf.range(size)), lengths
