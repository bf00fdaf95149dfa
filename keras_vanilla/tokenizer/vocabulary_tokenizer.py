"""Character and word tokenizers."""

import collections
import hashlib
import json
from collections.abc import Iterable, Sequence

import numpy as np

from keras_vanilla._checks import check_integer, check_line
from keras_vanilla.tokenizer import id_rows

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
UNKNOWN_TEXT = "\u2047"


class VocabularyTokenizer:
    """Maps text to ids and back with lists of symbols; see `TokenizerProtocol`.

    The ids 0 to 3 are pad, unknown, start and end; the i-th symbol has the id 4 + i. A
    subclass defines `split` (text to symbols), `join` (symbols to text) and `piece`
    (the name of a symbol, with "▁" in front if it starts a word).

    Args:
        symbols: list of str. Symbols of the source.
        target_symbols: list of str. Symbols of the target; None means `symbols`.
    Raises:
        TypeError: if symbols are not a list of str.
        ValueError: if a symbol occurs twice.
    """

    pad_id, unknown_id, start_id, end_id = range(4)

    def __init__(
        self, symbols: Sequence[str], target_symbols: Sequence[str] | None = None
    ):
        self.symbols = id_rows.checked_lines(symbols, "symbols")
        if target_symbols is None:
            target_symbols = self.symbols
        self.target_symbols = id_rows.checked_lines(target_symbols, "target_symbols")
        self._source_ids = _ids_of(self.symbols)
        self._target_ids = _ids_of(self.target_symbols)
        self.vocabulary_size = len(SPECIAL) + len(self.symbols)
        self.target_vocabulary_size = len(SPECIAL) + len(self.target_symbols)
        self.shares_vocabulary = self.symbols == self.target_symbols

    @classmethod
    def train(
        cls, lines: Iterable[str], vocabulary_size: int | None = None
    ) -> "VocabularyTokenizer":
        """Learns one vocabulary for both languages from the most frequent symbols.

        Args:
            lines: iterable of str.
            vocabulary_size: int. Largest number of ids, including the four special
                ones; None includes every symbol.
        Raises:
            TypeError: if `lines` is one str.
            ValueError: if there is no text, or the size is below 5.
        """
        return cls(cls._frequent(lines, vocabulary_size))

    @classmethod
    def train_separate(
        cls,
        source_lines: Iterable[str],
        target_lines: Iterable[str],
        vocabulary_size: int | None = None,
    ) -> "VocabularyTokenizer":
        """Learns one vocabulary per language; arguments and errors as in `train`."""
        sides = source_lines, target_lines
        return cls(*(cls._frequent(lines, vocabulary_size) for lines in sides))

    @property
    def digest(self) -> str:
        config = json.dumps([type(self).__name__, self.get_config()])
        return hashlib.sha256(config.encode()).hexdigest()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return self._encode(lines, self._source_ids)

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        return self._encode(lines, self._target_ids)

    def decode(self, ids: Sequence[Sequence[int]] | np.ndarray) -> list[str]:
        texts = [*SPECIAL[:1], UNKNOWN_TEXT, *SPECIAL[2:], *self.target_symbols]
        rows = id_rows.checked_rows(ids)
        rows = [id_rows.ids_of_text(row, len(texts), self) for row in rows]
        return [self.join([texts[id_] for id_ in row]) for row in rows]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._pieces(ids, self.symbols)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._pieces(ids, self.target_symbols)

    def get_config(self) -> dict[str, list[str]]:
        return {"symbols": self.symbols, "target_symbols": self.target_symbols}

    @classmethod
    def from_config(cls, config: dict[str, list[str]]) -> "VocabularyTokenizer":
        return cls(**config)

    @classmethod
    def _frequent(cls, lines, vocabulary_size):
        counts = collections.Counter()
        for number, line in enumerate(id_rows.check_iterable("lines", lines), start=1):
            check_line(number, line)
            counts.update(cls.split(line))
        if not counts:
            raise ValueError("There is no text to learn a vocabulary from.")
        by_count = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        if vocabulary_size is None:
            return by_count
        return by_count[: check_integer("vocabulary_size", vocabulary_size, 5) - 4]

    def _encode(self, lines, ids):
        rows = map(self.split, id_rows.checked_lines(lines))
        return [
            [*(ids.get(s, self.unknown_id) for s in row), self.end_id] for row in rows
        ]

    def _pieces(self, ids, symbols):
        pieces = [*SPECIAL, *map(self.piece, symbols)]
        return [pieces[id_] for id_ in ids]


class CharacterTokenizer(VocabularyTokenizer):
    """Maps text to the ids of its characters; a space is a character too."""

    split = staticmethod(list)
    join = staticmethod("".join)

    @staticmethod
    def piece(symbol: str) -> str:
        return "▁" if symbol == " " else symbol


class WordTokenizer(VocabularyTokenizer):
    """Maps text to the ids of its words, which are separated by white space."""

    split = staticmethod(str.split)
    join = staticmethod(" ".join)
    piece = staticmethod("▁{}".format)


def _ids_of(symbols):
    ids = {symbol: id_ for id_, symbol in enumerate(symbols, start=len(SPECIAL))}
    if len(ids) < len(symbols):
        repeated = collections.Counter(symbols).most_common(1)
        raise ValueError(f"A symbol must occur once. Received: {repeated}")
    return ids
