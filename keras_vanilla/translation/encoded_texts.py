"""The source ids of many texts, each text tokenised once."""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from keras_vanilla._checks import check_line

CHUNK = 4096  # texts tokenised together: lists of Python integers are large


class EncodedTexts(Sequence):
    """The ids of texts in one int32 array, with the end of each text.

    Args:
        texts: list of str.
        encode: function from a list of str to lists of ids, such as
            `Tokenizer.encode`.
        first_number: int. The number of the first text, for errors.
    Raises:
        TypeError: if `texts` is one str, or holds anything but str.
        ValueError: if a text holds an unpaired surrogate; the error has its number.
    """

    def __init__(
        self,
        texts: Iterable[str],
        encode: Callable[[Sequence[str]], list[list[int]]],
        first_number: int = 1,
    ):
        self.texts = checked_texts(texts, first_number)
        self._first_number = first_number
        flat, lengths = [], []
        for start in range(0, len(self.texts), CHUNK):
            rows = encode(self.texts[start : start + CHUNK])
            lengths += map(len, rows)
            flat.append(np.fromiter(itertools.chain(*rows), "int32"))
        self._flat = np.concatenate([np.zeros(0, "int32"), *flat])
        self._ends = np.cumsum(lengths, dtype="int64")

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, number: int) -> np.ndarray:
        if not 0 <= number < len(self):
            raise IndexError(number)
        start = self._ends[number - 1] if number else 0
        return self._flat[start : self._ends[number]]

    @property
    def lengths(self) -> np.ndarray:
        """The number of ids of each text, an int64 array."""
        return np.diff(self._ends, prepend=0)

    def refuse_longer(self, longest: int) -> None:
        """Refuses texts with more tokens than the model takes.

        Raises:
            ValueError: if there is one; the error names the first.
        """
        lengths = self.lengths
        for i in np.flatnonzero(lengths > longest)[:1]:
            number = self._first_number + i
            check_length("Text", number, lengths[i], longest, self.texts[i])


def checked_texts(texts: Iterable[str], first_number: int = 1) -> list[str]:
    """The texts as a list; `EncodedTexts` has the arguments and errors."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        remedy = f"; give [{texts!r:.40}]" if isinstance(texts, str) else ""
        raise TypeError(
            f"`texts` must be a list of str. Received: {texts!r:.40}{remedy}"
        )
    texts = list(texts)
    for number, text in enumerate(texts, start=first_number):
        check_line(number, text, "Text")
    return texts


def check_length(
    name: str, number: int, length: int, longest: int, value: object
) -> None:
    """Refuses a sequence of more than `longest` tokens.

    Args:
        name: str. What the sequence is, for the error, such as "Text".
        number: int. Its number, from 1.
        length: int. Its number of tokens.
        longest: int. The number of tokens that the model takes.
        value: str, or ids. What was received.
    Raises:
        ValueError: if it is longer.
    """
    if length > longest:
        raise ValueError(
            f"{name} {number} has {length} tokens, but the model takes at most "
            f"{longest}: {value[:40]!r}..."
        )
