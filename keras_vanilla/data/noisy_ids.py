"""Noise in pairs of ids, by way of their texts."""

import itertools
import re
from collections.abc import Sequence
from random import Random

import numpy as np

from keras_vanilla._graphemes import words_of_letters
from keras_vanilla.data.noise import Noise
from keras_vanilla.tokenizer import Tokenizer


class NoisyIds:
    """Changes pairs of ids by the noise in their texts.

    User-defined symbols at the beginning of a text, such as language tags, stay there.

    Args:
        tokenizer: Tokenizer.
        noise: Noise.
    Call arguments:
        sources, targets: integer arrays, one for each pair, each with its end.
        random: `random.Random`, which decides the result.
        most: int. A pair that becomes longer than this stays as it is, and so does one
            with unknown text.
    Returns:
        As many sources and targets.
    Raises:
        ValueError: if the tokenizer is another one.
    """

    def __init__(self, tokenizer: Tokenizer, noise: Noise):
        check_gives_texts(tokenizer)
        self._tokenizer, self._change = tokenizer, noise.change
        symbols = "|".join(map(re.escape, tokenizer.symbols))
        self._head = re.compile(rf"(?:\s*(?:{symbols}))*\s*" if symbols else "")

    def __call__(
        self,
        sources: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        random: Random,
        most: int,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        texts = self._tokenizer.decode_source(sources), self._tokenizer.decode(targets)
        words = words_of_letters(" ".join(itertools.chain(*texts)))
        sources, targets = list(sources), list(targets)
        changed, pairs = [], []
        for row, pair in enumerate(zip(*texts, strict=True)):
            noisy = self._noisy(*pair, random, words)
            if noisy != pair and self._is_whole(sources[row], targets[row]):
                changed.append(row)
                pairs.append(noisy)
        new = (
            self._tokenizer.encode([source for source, _ in pairs]),
            self._tokenizer.encode_target([target for _, target in pairs]),
        )
        for row, *noisy in zip(changed, *new, strict=True):
            if max(map(len, noisy)) <= most:
                sources[row], targets[row] = map(np.asarray, noisy)
        return sources, targets

    def _is_whole(self, source, target):
        """Whether the texts of ids are whole: nothing in them is unknown."""
        unknown = self._tokenizer.unknown_id
        return unknown not in source and unknown not in target

    def _noisy(self, source, target, random, words):
        """The pair with noise, each side after its symbols."""
        heads = [self._head.match(text)[0] for text in (source, target)]
        bodies = [
            text.removeprefix(head)
            for text, head in zip((source, target), heads, strict=True)
        ]
        noisy = self._change(*bodies, random, words)
        source, target = (h + body for h, body in zip(heads, noisy, strict=True))
        return source, target


def check_gives_texts(tokenizer: object) -> None:
    """Refuses a tokenizer that cannot give the text of source ids.

    Args:
        tokenizer: what was received.
    Raises:
        ValueError: if it is not a `Tokenizer`.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise ValueError(
            "Noise needs a `Tokenizer`, which gives the text of source ids. Received: "
            f"a {type(tokenizer).__name__}"
        )
