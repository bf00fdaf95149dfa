"""Noise in pairs of ids, by way of their texts."""

import itertools
import re
from collections.abc import Sequence
from random import Random

import numpy as np

from keras_vanilla.data.noise import WORDS, Noise
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
        most: int. A pair that becomes longer than this stays as it is.
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
        words = WORDS.findall(" ".join(itertools.chain(*texts)))
        pairs = [self._noisy(*pair, random, words) for pair in zip(*texts, strict=True)]
        noisy_sources, noisy_targets = map(list, zip(*pairs, strict=True))
        new = (
            self._tokenizer.encode(noisy_sources),
            self._tokenizer.encode_target(noisy_targets),
        )
        rows = [
            noisy if max(map(len, noisy)) <= most else plain
            for noisy, plain in zip(
                zip(*new, strict=True), zip(sources, targets, strict=True), strict=True
            )
        ]
        sources, targets = zip(*rows, strict=True)
        return list(map(np.asarray, sources)), list(map(np.asarray, targets))

    def _noisy(self, source, target, random, words):
        """The pair with noise, each side after its symbols."""
        heads = [self._head.match(text)[0] for text in (source, target)]
        bodies = [
            text.removeprefix(head)
            for text, head in zip((source, target), heads, strict=True)
        ]
        noisy = self._change(*bodies, random, words)
        return [head + body for head, body in zip(heads, noisy, strict=True)]


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
