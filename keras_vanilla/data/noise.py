"""Noise for training pairs: typos, capitals and text to copy."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from keras_vanilla._graphemes import (
    letters,
    split_last_marks,
    with_marks,
    without_marks,
    without_punctuation,
    words,
    words_of_letters,
)
from keras_vanilla.data.things_to_copy import plain_thing, random_thing
from keras_vanilla.tokenizer import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Occurs in addresses and in numbers with several parts, which are not changed inside.
WHOLE = r"://|@|[\w{marks}]\.\w[\w{marks}]|\d[.,:/-]\d"
# Fractions of the pairs with a thing to copy.
ALONE, IN_PLACE, FIRST, TWO = 0.25, 0.5, 1 / 3, 0.3

# The texts of a pair, a random generator, words of other texts -> the texts of a pair.
Change = Callable[[str, str, Random, Sequence[str]], tuple[str, str]]


class Noise(NamedTuple):
    """One kind of noise.

    Fields:
        name: str. Name of the noise, which is part of its random seed.
        share: float. Number of pairs with this noise per pair of the corpus.
        change: function that maps the texts of a pair to texts with noise.
    """

    name: str
    share: float
    change: Change


def as_people_write(
    source: str, target: str, random: Random, words: Sequence[str]
) -> tuple[str, str]:
    """Changes some sources slightly, but not their translations.

    Of twenty sources, two are in title case, two have one or two typos, and one has no
    punctuation.
    """
    chosen = int(random.random() * 20)
    if chosen in (0, 2):
        source = re.sub(r"(?<!\S)\w", lambda letter: letter[0].upper(), source)
    elif chosen in (1, 3):
        source = _with_typos(source, random)
    elif chosen == 4:
        source = without_punctuation(source)
    return source, target


def in_upper_case(
    source: str, target: str, random: Random, words: Sequence[str]
) -> tuple[str, str]:
    """The source in capitals."""
    return source.upper(), target


def with_thing_to_copy(
    source: str, target: str, random: Random, words: Sequence[str]
) -> tuple[str, str]:
    """Inserts one or two things, such as numbers or addresses, into both sides.

    A thing replaces a word that occurs once on both sides, or is put at the beginning
    or the end of both. A quarter of the pairs consist only of such things, from which
    copying is learned fastest.
    """
    if random.random() < ALONE:
        things = random_thing(random, words)
        while len(things) < len(source) / 2:
            things += f" {random_thing(random, words)}"
        return things, things
    positions = ["first", "last"] if random.random() < FIRST else ["last", "first"]
    spans = _once(source), _once(target)
    shared = sorted(spans[0].keys() & spans[1].keys())
    if shared and random.random() < IN_PLACE:
        positions.insert(0, "middle")
    count = 2 if random.random() < TWO else 1
    things = {position: random_thing(random, words) for position in positions[:count]}
    word, gap = random.choice(shared or [""]), random.choice(["", " "])
    return tuple(
        _with_things(text, things, text_spans.get(word), gap)
        for text, text_spans in zip((source, target), spans, strict=True)
    )


# Pairs of the corpus itself have the noise of `as_people_write`. Upper case takes
# several times as many pieces, and a thing to copy about ten, so both have separate
# batches.
IN_ALL = Noise("people", 1.0, as_people_write)
BESIDE = (Noise("upper", 0.25, in_upper_case), Noise("copy", 0.4, with_thing_to_copy))


class NoisyIds:
    """Adds noise to pairs of ids, by changing their texts.

    User-defined symbols at the beginning of a text, such as language tags, are kept.

    Args:
        tokenizer: Tokenizer.
        noise: Noise.
    Call arguments:
        sources, targets: integer arrays, one for each pair, each with its end.
        random: `random.Random`, which determines the result.
        most: int. Pairs that would become longer than this are not changed, nor are
            pairs with unknown text.
    Returns:
        The same number of sources and targets.
    Raises:
        ValueError: if the tokenizer is not a `Tokenizer`.
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
        changed, pairs, unknown = [], [], self._tokenizer.unknown_id
        for row, pair in enumerate(zip(*texts, strict=True)):
            noisy = self._noisy(*pair, random, words)
            ids = sources[row], targets[row]
            if noisy != pair and not any(unknown in side for side in ids):
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

    def _noisy(self, source, target, random, words):
        """Adds noise to a pair, after the leading symbols of each side."""
        heads = [self._head.match(text)[0] for text in (source, target)]
        bodies = [
            text.removeprefix(head)
            for text, head in zip((source, target), heads, strict=True)
        ]
        noisy = self._change(*bodies, random, words)
        source, target = (h + body for h, body in zip(heads, noisy, strict=True))
        return source, target


def check_gives_texts(tokenizer: object) -> None:
    """Refuses a tokenizer that cannot decode source ids.

    Args:
        tokenizer: the received value.
    Raises:
        ValueError: if it is not a `Tokenizer`.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise ValueError(
            "Noise needs a `Tokenizer`, which gives the text of source ids. Received: "
            f"a {type(tokenizer).__name__}"
        )


def lines_with_noise(lines: Iterable[str]) -> Iterator[str]:
    """Adds noisy lines, so that a vocabulary has pieces for them.

    Every tenth line is repeated in upper case, with a thing to copy.
    """
    random = Random(0)
    for index, line in enumerate(lines):
        yield line
        if index % 10 == 0:
            yield f"{line.upper()} {plain_thing(random, words_of_letters(line))}"


def _with_typos(text, random):
    """Drops, doubles, swaps or replaces one or two letters."""
    for _ in range(random.choice([1, 1, 2])):
        written = letters(text)
        pairs = enumerate(zip(written, written[1:], strict=False))
        positions = [i for i, (one, two) in pairs if (one[0] + two[0]).isalpha()]
        if not positions:
            return text
        i = random.choice(positions)
        one, two = written[i : i + 2]
        typos = two, one + one + two, two + one, random.choice(LETTERS) + two
        text = "".join([*written[:i], random.choice(typos), *written[i + 2 :]])
    return text


def _with_things(text, things, span, gap):
    """Inserts things into a text at up to three positions.

    The first is put before the text, the middle one replaces a word, and the last is
    put before the final punctuation.
    """
    body, marks = split_last_marks(text)
    if "middle" in things:
        body = body[: span[0]] + things["middle"] + body[span[1] :]
    if "first" in things:
        body = f"{things['first']} {body}"
    if "last" in things:
        body, marks = f"{body} {things['last']}{gap}", marks.strip()
    return f"{body}{marks}".strip()


def _once(text):
    """The numbers and capitalised words that occur once in a text, with positions."""
    counts = Counter(word[0] for word in words(text))
    pattern = with_marks(WHOLE)
    text = re.sub(
        r"\S+", lambda x: " " * len(x[0]) if pattern.search(x[0]) else x[0], text
    )
    return {
        word[0]: word.span()
        for word in words(text)
        if counts[word[0]] == 1
        and (word[0][0].isdigit() or without_marks(word[0]).istitle())
    }
