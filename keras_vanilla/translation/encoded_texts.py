"""The ids of many texts, tokenised once each, and of target prefixes."""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from keras_vanilla._checks import check_line
from keras_vanilla.tokenizer import TokenizerProtocol

CHUNK = 4096  # texts tokenised at a time, because lists of Python integers are large


class EncodedTexts(Sequence):
    """The ids of texts in one int32 array, with the end of each text.

    Args:
        texts: list of str.
        encode: function from a list of str to lists of ids, such as
            `Tokenizer.encode`.
        first_number: int. The number of the first text, for errors.
    Raises:
        TypeError: if `texts` is one str, or not all items are str.
        ValueError: if a text has an unpaired surrogate; the error gives its number.
    """

    def __init__(
        self,
        texts: Iterable[str],
        encode: Callable[[Sequence[str]], list[list[int]]],
        first_number: int = 1,
    ):
        self.texts = checked_texts(texts, first_number)
        flat, lengths = [], []
        for start in range(0, len(self.texts), CHUNK):
            rows = encode(self.texts[start : start + CHUNK])
            lengths += map(len, rows)
            flat.append(np.fromiter(itertools.chain(*rows), "int32"))
        self._flat = np.concatenate([np.zeros(0, "int32"), *flat])
        self._ends = np.cumsum(lengths, dtype="int64")

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = self._ends[index - 1] if index else 0
        return self._flat[start : self._ends[index]]

    @property
    def lengths(self) -> np.ndarray:
        """The number of ids of each text, as an int64 array."""
        return np.diff(self._ends, prepend=0)


def checked_texts(texts: Iterable[str], first_number: int = 1) -> list[str]:
    """Checks texts and returns them as a list; see `EncodedTexts`."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        remedy = f"; give [{texts!r:.40}]" if isinstance(texts, str) else ""
        raise TypeError(
            f"`texts` must be a list of str. Received: {texts!r:.40}{remedy}"
        )
    texts = list(texts)
    for number, text in enumerate(texts, start=first_number):
        check_line(number, text, "Text")
    return texts


def encoded_prefixes(
    prefixes: Sequence[str],
    count: int,
    tokenizer: TokenizerProtocol,
    longest: int,
    forbidden_ids: Sequence[int] = (),
    first_number: int = 1,
) -> list[list[int]]:
    """Encodes each prefix as target ids, without an end.

    Args:
        prefixes: list of str, one for each text; "" means no prefix.
        count: int. Number of texts.
        tokenizer: TokenizerProtocol.
        longest: int. The longest output in tokens.
        forbidden_ids: sequence of int. Target ids that the model never chooses.
        first_number: int. The number of the first text, for errors.
    Raises:
        TypeError: if `prefixes` is one str, or not all items are str.
        ValueError: if the number of prefixes differs from that of texts, or a prefix
            has an unknown character, an incomplete character, a piece that the model
            never chooses, or too many tokens.
    """
    if isinstance(prefixes, str):
        raise TypeError(
            "`target_prefix` must be a list with one str for each text. Received: "
            f"{prefixes!r:.60}"
        )
    prefixes = list(prefixes)
    if len(prefixes) != count:
        raise ValueError(
            "There must be one target prefix for each text. Received: "
            f"{len(prefixes)} for {count} texts"
        )
    for number, prefix in enumerate(prefixes, start=first_number):
        check_line(number, prefix, "Target prefix")
    rows = [ids[:-1] for ids in tokenizer.encode_target(prefixes)]
    for number, prefix, ids in zip(itertools.count(first_number), prefixes, rows):
        wrong = None
        if tokenizer.unknown_id in ids:
            wrong = "has a character that the tokenizer does not know"
        elif not set(ids).isdisjoint(forbidden_ids):
            among = f"among the model's `forbidden_ids`, {[*forbidden_ids]}"
            wrong = f"has a piece {among}"
        elif len(ids) > longest:
            wrong = f"has {len(ids)} tokens, but the longest output has {longest}"
        if wrong:
            raise ValueError(f"Target prefix {number} {wrong}: {prefix!r:.60}")
    return rows


def check_lengths(
    name: str,
    lengths: Sequence[int],
    longest: int,
    values: Sequence,
    first_number: int = 1,
    remedy: str = "",
) -> None:
    """Refuses sequences of more than `longest` tokens.

    Args:
        name: str. Kind of the sequences, such as "Text", for the error.
        lengths: list of int. Number of tokens in each sequence.
        longest: int. Largest number of tokens that the model accepts.
        values: list of str, or of ids. The sequences, for the error.
        first_number: int. The number of the first sequence.
        remedy: str. What the error says at its end.
    Raises:
        ValueError: if a sequence is longer; the error names the first.
    """
    too_long = np.flatnonzero(np.asarray(lengths) > longest)
    if too_long.size:
        i = too_long[0]
        raise ValueError(
            f"{name} {first_number + i} has {lengths[i]} tokens, but the model takes "
            f"at most {longest}: {values[i][:40]!r}...{remedy}"
        )
