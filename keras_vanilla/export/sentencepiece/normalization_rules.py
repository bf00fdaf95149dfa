"""A SentencePiece model's character map and white space rules, as arrays."""

import numpy as np

from keras_vanilla.export.sentencepiece.trie import FREE, ByteTrie, narrow
from keras_vanilla.export.sentencepiece.unigram_model import SPACE_MARK, UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER, REPLACEMENT

MALFORMED = 0
SPACE = 1 + LONGEST_CHARACTER
MARK = SPACE + 1
# Of a unit of darts-clone's double array.
IS_VALUE, BROAD, HAS_VALUE = 1 << 31, 1 << 9, 1 << 8


class NormalizationRules:
    """The rules that rewrite the bytes at one place of a text, by number.

        0             a malformed byte becomes U+FFFD
        1 to 4        a character of that many bytes is kept
        5, 6          a space is kept, a space mark is kept
        from 7        the character map's replacement of the longest key it has there
        the last      a user-defined symbol is kept

    Where several apply, the highest is used.

    Args:
        model: UnigramModel.
    Attributes:
        tries: ByteTries of the rules from 5 on.
        octets: uint8 array. The outputs of all rules, joined.
        starts: int32 array (rules,). Where each output begins in `octets`.
        shapes: int array (rules, 4). Of each output: the number of bytes; of leading
            spaces; of bytes up to the last that is not a space; whether it ends with a
            space.
        longest_key: int. Bytes of the longest key that has a rule.
    """

    def __init__(self, model: UnigramModel):
        symbols = [model.pieces[id_] for id_ in model.ids_of("USER_DEFINED")]
        # Only their shapes matter: the text itself is kept.
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
        self._lay_out(texts, model)

    def _lay_out(self, texts, model):
        marked = [text.replace(b" ", model.space) for text in texts]
        self.starts = np.cumsum([0, *map(len, marked[:-1])]).astype("int32")
        self.octets = np.frombuffer(b"".join(marked), "uint8")
        strips = model.spec.remove_extra_whitespaces
        self.shapes = narrow([_shape(text, model.space, strips) for text in texts])


def _shape(text, space, strips):
    """A row of `shapes`; where no spaces are stripped, all bytes count as text."""
    marked = text.replace(b" ", space)
    if not strips:
        return len(marked), 0, len(marked), 0
    leading = len(text) - len(text.lstrip(b" "))
    solid = marked
    while solid.endswith(space):
        solid = solid.removesuffix(space)
    return len(marked), leading * len(space), len(solid), text.endswith(b" ")


def _unpack(charsmap, first_rule):
    """The trie of a `precompiled_charsmap`, and its replacements, one per rule.

    The map is the byte size of a darts-clone double array, that array, and strings
    that end with a zero byte.
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
    return ByteTrie(base, label, value, 0, MALFORMED), replacements
