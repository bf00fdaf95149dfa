"""Normalises text like SentencePiece in a graph."""

import numpy as np
from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor
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
GROWTH = 3  # fixed shapes have room for text that becomes three times as long
# Bit fields of a unit of darts-clone's double array.
IS_VALUE, BROAD, HAS_VALUE = 1 << 31, 1 << 9, 1 << 8


class NormalizationRules:
    """The rules that rewrite the bytes at one position of a text, by number.

        0             replace a malformed byte by U+FFFD
        1 to 4        keep a character of that many bytes
        5, 6          keep a space, keep a space mark
        from 7        replace the longest matching key of the character map
        then          keep a user-defined symbol
        the last      write nothing

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
        longest_key, longest_output: int. Number of bytes of the longest key that has a
            rule, and of the longest output.
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
        texts += [*symbols, b""]
        self.longest_key = max(trie.longest() for trie in self.tries)
        marked = [text.replace(b" ", model.space) for text in texts]
        self.longest_output = max(map(len, marked))
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
        text_bytes: int32 tensor (n + 4,), bytes from 0 to 254, then zeros.
        length: int or int32 tensor (). Number of bytes before the zeros, at most n.
    Returns:
        Int32 tensors (m + 1,): the bytes of the normalised text and a zero; and the
        position in the input that each of them comes from. Int32 tensor (), the length
        of the normalised text; what follows it has no meaning. The position of its end
        is the end of the text without the stripped spaces. If shapes are fixed and the
        length exceeds m, the rest of the text is missing.
    """

    def __init__(self, model: UnigramModel):
        self._rules = NormalizationRules(model)
        self._nothing = len(self._rules.starts) - 1
        self._strips = int(model.spec.remove_extra_whitespaces)
        self._space = model.space
        prefix = model.space if model.spec.add_dummy_prefix else b""
        self._prefix = np.frombuffer(prefix, "uint8")

    def __call__(
        self, text_bytes: Tensor, length: Tensor | int
    ) -> tuple[Tensor, Tensor, Tensor]:
        operators = current_operators()
        rules, ends = self._rules_at(text_bytes)
        (size,) = ops.shape(text_bytes)
        # The positions where rules apply, then `length` repeated.
        positions = ops.arange(size, dtype="int32")
        positions = follow_jumps(ops.minimum(ends, length), 0, positions)
        rules = operators.gather(rules, positions)
        rules = ops.where(positions < length, rules, self._nothing)
        begin = self._begin(positions, rules, length)
        sizes = ops.cast(operators.gather(self._rules.shapes[:, 0], rules), "int32")
        written = operators.true_positions(sizes > 0, size)
        positions, rules = (operators.gather(x, written) for x in (positions, rules))
        sizes, leading, last, spaced = (
            ops.cast(operators.gather(column, rules), "int32")
            for column in self._rules.shapes.T
        )
        # The text is preceded by the prefix, a space.
        spaced = ops.pad(spaced, [[1, 0]], constant_values=self._strips)[:-1]
        skipped = leading * spaced
        solid = self._solid(sizes, skipped, last)
        solid = ops.where(length > 0, solid, 0)
        text, origins = self._written(text_bytes, positions, rules, sizes, skipped)
        most = GROWTH * size + len(self._prefix)
        text = ops.concatenate([self._prefix, text], axis=0)
        text = ops.slice(text, [0], [operators.size_for(solid, most)])
        prefix = ops.zeros((len(self._prefix),), dtype="int32") + begin
        origins = ops.concatenate([prefix, origins, ops.reshape(length, (1,))], axis=0)
        origins = ops.slice(origins, [0], [operators.size_for(solid + 1, most + 1)])
        return ops.pad(ops.cast(text, "int32"), [[0, 1]]), origins, solid

    def _begin(self, positions, rules, length):
        """The start of the text, after leading spaces if they are stripped."""
        if not self._strips:
            return 0
        sizes, leading, _, _ = self._rules.shapes.T
        is_space = (sizes == leading) & (sizes == len(self._space))
        is_space = current_operators().gather(is_space, rules)
        return ops.min(ops.where(is_space, length, positions))

    def _solid(self, sizes, skipped, last):
        """The number of bytes before the stripped trailing spaces."""
        begins = ops.cumsum(sizes - skipped) - sizes + len(self._prefix)
        nothing = 0 if self._strips else len(self._prefix)
        solid = ops.max(ops.where(last > 0, begins + last, 0))
        return ops.maximum(nothing, solid)

    def _written(self, text_bytes, positions, rules, sizes, skipped):
        """Joins the outputs of the rules, uint8; also returns each byte's source."""
        operators = current_operators()
        source = [self._rules.outputs, ops.cast(text_bytes, "uint8")]
        source = ops.concatenate(source, axis=0)
        copies = (rules > MALFORMED) & (rules < SPACE)
        starts = ops.where(
            copies,
            positions + len(self._rules.outputs),
            operators.gather(self._rules.starts, rules),
        )
        longest = ops.maximum(1, ops.max(sizes))
        longest = operators.size_for(longest, self._rules.longest_output)
        offsets = ops.arange(longest, dtype="int32")
        starts, skipped, sizes, positions = (
            ops.expand_dims(column, 1) for column in (starts, skipped, sizes, positions)
        )
        used = (offsets >= skipped) & (offsets < sizes)
        positions = ops.broadcast_to(positions, ops.shape(used))
        (size,) = ops.shape(text_bytes)
        used = operators.true_positions(ops.reshape(used, (-1,)), GROWTH * size)
        origins, places = (
            operators.gather(ops.reshape(x, (-1,)), used)
            for x in (positions, starts + offsets)
        )
        return operators.gather(source, places), origins

    def _rules_at(self, text_bytes):
        """Returns each position's rule, and the end of the bytes that it replaces.

        Both are int32 tensors (n + 4,).
        """
        rules = character_lengths(text_bytes)
        input_sizes = ops.maximum(rules, 1)
        for trie in self._rules.tries:
            trie_rules, lengths = self._longest_keys(trie, text_bytes)
            input_sizes = ops.where(trie_rules > rules, lengths, input_sizes)
            rules = ops.maximum(trie_rules, rules)
        positions = ops.arange(ops.shape(text_bytes)[0], dtype="int32")
        return rules, positions + input_sizes

    def _longest_keys(self, trie, text_bytes):
        """Returns value and length of the longest key at each position, or zeros."""
        values = trie.values(trie.walk(text_bytes, self._rules.longest_key))
        depth, size = ops.shape(values)
        lengths = ops.arange(1, depth + 1, dtype="int32")[:, None]
        lengths = ops.max(ops.where(values > 0, lengths, 0), axis=0)
        rows = ops.maximum(lengths, 1) - 1
        flat, columns = ops.reshape(values, (-1,)), ops.arange(size, dtype="int32")
        return current_operators().gather(flat, rows * size + columns), lengths
