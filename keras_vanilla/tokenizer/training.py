"""Trains SentencePiece models."""

import bisect
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_vanilla._checks import check_choice, check_line
from keras_vanilla.tokenizer.id_rows import checked_lines
from keras_vanilla.tokenizer.piece_names import BYTE_PIECE

# Bit fields of a unit of darts-clone's double array.
VALUE, BROAD, HAS_VALUE, LABEL = 1 << 31, 1 << 9, 1 << 8, 1 << 31 | 0xFF
MODEL_TYPES = ("unigram", "bpe")
NORMALIZATION = "nmt_nfkc"
# SentencePiece's trainer drops lines above 4,192 bytes, and takes minutes for words of
# a hundred thousand letters. So lines are cut to 1,000 characters, at a space if any.
SHORT_LINE = re.compile(r".{1,1000}(?=\s|$)|.{1,1000}", re.DOTALL)
# It also drops, without a warning, every line that contains its mark for unknown text.
UNKNOWN_MARK = "\u2585"
SPACE_MARK = "▁"
# Soft hyphen, zero-width space, word joiner, byte-order mark and direction marks, which
# may be inside words. The joiners of emoji and of some scripts are not among them.
INVISIBLE = "\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff" + "".join(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
REMOVED = str.maketrans("", "", INVISIBLE)
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
SMALLEST_SIZE = len(SPECIAL_PIECES) + 256  # special and byte pieces
# A text with fewer lines than a number gets the size below it, others the last size.
LINES = (40_000, 2_000_000, 20_000_000)
SIZES = (4_000, 8_000, 16_000, 32_000)
# SentencePiece takes 1.6 kB of memory per line of 70 letters.
MOST_LINES = 2_000_000
REQUIRED_SIZE = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def fitting_size(num_lines: int, num_characters: int) -> int:
    """The vocabulary size for a text, see the table in `Tokenizer.train`.

    Args:
        num_lines: int. Number of lines.
        num_characters: int. Number of different characters after normalisation.
    """
    by_lines = SIZES[bisect.bisect_right(LINES, num_lines)]
    return max(by_lines, SMALLEST_SIZE + 2 * num_characters)


def learn_vocabulary(
    lines: Iterable[str],
    vocabulary_size: int | None,
    model_type: str,
    user_defined_symbols: Sequence[str] = (),
    split_digits: bool = False,
) -> bytes:
    """Learns a SentencePiece model of at most `vocabulary_size` pieces.

    It uses nmt_nfkc normalisation, which deletes `INVISIBLE`, byte fallback and the
    special ids 0 to 3 (pad, unknown, start, end). All lines are used, or every n-th if
    there are more than 2 million; the characters are those of all lines. The same lines
    give the same bytes.

    Args:
        lines: iterable of str, read several times; the lines of an iterator are kept.
        vocabulary_size: int. Lowered if the text is too small for it; None means
            `fitting_size`.
        model_type: "unigram" or "bpe".
        user_defined_symbols: list of str, each of which becomes one piece.
        split_digits: bool. Whether each digit is one piece.
    Raises:
        TypeError: if a line or a symbol is not a str.
        ValueError: if the type is unknown, there is no text, a line has an unpaired
            surrogate, a symbol cannot be one piece, or the size is too small for the
            special pieces, the byte pieces, the symbols and the characters.
    """
    check_choice("model_type", model_type, MODEL_TYPES)
    symbols = _checked_symbols(user_defined_symbols)
    if isinstance(lines, Iterator):
        lines = checked_lines(lines)
    num_lines = _checked_length(lines)
    if vocabulary_size is None:
        num_characters = len(_characters(lines))
        vocabulary_size = fitting_size(num_lines, num_characters) + len(symbols)
    every = -(-num_lines // MOST_LINES)
    characters = sorted(_characters(lines) - {SPACE_MARK}) if every > 1 else []
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_short_lines(itertools.islice(lines, 0, None, every)),
            required_chars="".join(characters),
            model_writer=model,
            # With a smaller size, the error would not give the required one.
            vocab_size=max(SMALLEST_SIZE + len(symbols), vocabulary_size),
            user_defined_symbols=symbols,
            split_digits=split_digits,
            hard_vocab_limit=False,  # allow smaller vocabularies for small texts
            model_type=model_type,
            normalization_rule_name=NORMALIZATION,
            character_coverage=1.0,  # with 0.9999, the digits of Multi30k become bytes
            byte_fallback=True,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            num_threads=1,  # sums over threads differ between runs
            minloglevel=2,
        )
    except RuntimeError as error:
        required = REQUIRED_SIZE.search(str(error))
        if required is None:
            raise ValueError(
                f"SentencePiece cannot learn from this text: {error}."
            ) from None
        raise ValueError(
            "`vocabulary_size` must hold 4 special pieces, 256 byte pieces, the "
            "user-defined symbols and every character of the text: at least "
            f"{required[1]}. Received: {vocabulary_size}"
        ) from None
    proto = ModelProto.FromString(model.getvalue())
    spec = proto.normalizer_spec
    spec.precompiled_charsmap = _deleting(INVISIBLE, spec.precompiled_charsmap)
    return proto.SerializeToString()


def _deleting(characters, charsmap):
    """Adds rules to a `precompiled_charsmap` that delete characters.

    The map is described in `export.sentencepiece.normalizer`. A node of its trie keeps
    the block of its children, XOR its own position, above ten bits that are copied.
    Children are copied to a new block before they change, because nodes may share them.
    """
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).tolist()
    strings = charsmap[4 + size :]

    def new_block():
        units.extend([VALUE] * 256)
        return len(units) - 256

    def children(node):
        return node ^ (units[node] >> 10 << ((units[node] & BROAD) >> 6))

    def point(node, block):
        units[node] = units[node] & (LABEL | HAS_VALUE) | (node ^ block) << 10

    def copy_children(node):
        old, new = children(node), new_block()
        if units[node] & HAS_VALUE:
            units[new] = units[old]
        for byte in range(1, 256):
            if units[old ^ byte] & LABEL == byte:
                units[new ^ byte] = units[old ^ byte]
                point(new ^ byte, children(old ^ byte))
        point(node, new)

    deletion, own = new_block(), set()
    units[deletion] = VALUE | len(strings)  # of the empty string that is added
    for character in characters:
        node = 0
        for byte in character.encode():
            if node not in own:
                copy_children(node)
            own.add(node)
            node = children(node) ^ byte
            if units[node] & LABEL != byte:
                units[node] = byte
                point(node, new_block())
                own.add(node)
        units[node] |= HAS_VALUE
        point(node, deletion)
    trie = np.array(units, "<u4").tobytes()
    return len(trie).to_bytes(4, "little") + trie + strings + b"\0"


def _checked_symbols(symbols):
    """Checks that SentencePiece keeps each symbol in one piece; returns a list."""
    symbols = checked_lines(symbols, "user_defined_symbols")
    for symbol in symbols:
        has_space = symbol.split() != [symbol] or SPACE_MARK in symbol
        is_taken = symbol in SPECIAL_PIECES or BYTE_PIECE.fullmatch(symbol)
        if has_space or is_taken or symbols.count(symbol) > 1:
            raise ValueError(
                "`user_defined_symbols` must be different texts without white space, "
                f"other than {', '.join(SPECIAL_PIECES)} and byte pieces such as <0x41>"
                f". Received: {symbol!r}"
            )
    return symbols


def _checked_length(lines):
    """The number of lines; refuses lines that are not UTF-8, and a lack of text."""
    number, has_text = 0, False
    for number, line in enumerate(lines, start=1):
        check_line(number, line)
        has_text = has_text or bool(line.replace(UNKNOWN_MARK, " ").strip())
    if not has_text:
        raise ValueError("There is no text to learn a vocabulary from.")
    return number


def _short_lines(lines):
    """Shortens lines so that SentencePiece's trainer drops none of them."""
    for line in lines:
        line = line.replace(UNKNOWN_MARK, " ").translate(REMOVED)
        yield from SHORT_LINE.findall(line) if len(line) > 1000 else [line]


def _characters(lines):
    """The characters after normalisation, which composes "e" and an accent to "é"."""
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=NORMALIZATION)
    characters = set()
    for line in _short_lines(lines):
        characters.update(normalizer.normalize(line))
    return characters
