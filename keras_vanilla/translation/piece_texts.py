"""What searches know of the texts of pieces: words, numbers and equal texts."""

import functools
import re
import sys
import unicodedata
from collections.abc import Sequence

import numpy as np

from keras_vanilla._graphemes import with_marks
from keras_vanilla.decoding.loops import NUMBER, LoopGuard
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.piece_names import BYTE_PIECE, source_names, target_names
from keras_vanilla.translation.alignment import WORD_START

# Scripts without spaces between words, in which each letter counts as a word.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
IN_WORD = rf"(?![{UNSPACED}])[\w{{marks}}]"
CONNECTING = ".,:;!?/@+=&#%"  # signs after which a word only begins after a space
LATER_BYTE = re.compile(r"<0x[89AB][0-9A-F]>")  # of a character, after its first
LANGUAGE_CODE = re.compile(">>.+<<")
REPEATED = re.compile(r"(.+?)\1*", re.DOTALL)


def piece_text(piece: str) -> str:
    """The text of a piece; a letter for a byte that is part of a character."""
    byte = BYTE_PIECE.fullmatch(piece)
    if byte is None:
        return piece
    return chr(int(byte[1], 16)) if int(byte[1], 16) < 0x80 else "x"


def inside_words(tokenizer: TokenizerProtocol) -> np.ndarray:
    """(2, V): True if a target piece ends, or begins, within a word."""
    name = target_names(tokenizer)
    in_word = with_marks(IN_WORD)
    inside = np.zeros((2, tokenizer.target_vocabulary_size), bool)
    special = tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id
    for id_ in range(inside.shape[1]):
        text = piece_text(name(id_))
        if text and id_ not in (*special, tokenizer.unknown_id):
            inside[:, id_] = [bool(in_word.match(text[i])) for i in (-1, 0)]
            inside[0, id_] |= text[-1] in CONNECTING
    return inside


@functools.cache
def is_known(piece: str) -> bool | None:
    """Whether a source piece is known text; None for a part that does not count.

    A character in bytes counts once, by its first byte; spaces and language codes do
    not count.
    """
    if LATER_BYTE.fullmatch(piece) or LANGUAGE_CODE.fullmatch(piece):
        return None
    return BYTE_PIECE.fullmatch(piece) is None if piece.strip(WORD_START) else None


def known_share(tokenizer: TokenizerProtocol, ids: Sequence[int]) -> float | None:
    """The share of a text's ids that the vocabulary has, as `is_known` counts them.

    None if nothing counts.
    """
    ids = [int(id_) for id_ in ids]
    pairs = zip(ids, tokenizer.source_pieces(ids), strict=True)
    counted = [
        is_known(piece) and id_ != tokenizer.unknown_id
        for id_, piece in pairs
        if is_known(piece) is not None
    ]
    return sum(counted) / len(counted) if counted else None


def loop_guard(tokenizer: TokenizerProtocol) -> LoopGuard:
    """The LoopGuard of a vocabulary. Texts are compared in NFKC, without case."""
    numbered = {}  # text -> its number

    def texts_and_times(name, size):
        pairs = [_text_and_times(name(id_)) for id_ in range(size)]
        rows = [(numbered.setdefault(text, len(numbered)), n) for text, n in pairs]
        return np.array(rows).T

    source = texts_and_times(source_names(tokenizer), tokenizer.vocabulary_size)
    target, size = target_names(tokenizer), tokenizer.target_vocabulary_size
    texts, _ = texts_and_times(target, size)
    texts[[_may_be_number(target(id_)) for id_ in range(size)]] = NUMBER
    dtype = "int16" if len(numbered) <= 2**15 else "int32"
    return LoopGuard(*source.astype(dtype), texts.astype(dtype))


def _text_and_times(piece):
    """The text that a piece consists of, and how often: "----" is "-" four times."""
    if BYTE_PIECE.fullmatch(piece):
        return piece, 1
    text = unicodedata.normalize("NFKC", piece.replace(WORD_START, "")).casefold()
    repeated = REPEATED.fullmatch(text)
    return (repeated[1], len(text) // len(repeated[1])) if repeated else (piece, 1)


def _may_be_number(piece):
    """True for digits, numerals, and the first bytes of those of some scripts.

    Letters that are numerals, such as 一 and 千, are so only in pieces of such letters:
    they are part of many words.
    """
    byte = BYTE_PIECE.fullmatch(piece)
    if byte is not None and int(byte[1], 16) in _first_bytes_of_numerals():
        return True
    text = piece_text(piece).removeprefix(WORD_START)
    return text.isnumeric() or any(unicodedata.category(x)[0] == "N" for x in text)


@functools.cache
def _first_bytes_of_numerals():
    characters = filter(str.isnumeric, map(chr, range(sys.maxunicode + 1)))
    return {character.encode()[0] for character in characters}
