"""Noise for training pairs: typos, capitals, and generated text to copy."""

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
from keras_vanilla.tokenizer import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
SYMBOLS = "!?.,;:-+*/=<>()[]{}%&#@~_|$§€£¥"
JOINER, AS_EMOJI = "\u200d", "\ufe0f"
EMOJI = [*map(chr, (*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6C6)))]
TEXT_EMOJI = "☀☁☎☕☹☺♀♂♥⚠⚡✈✉✌✔✨❄❗❤⭐"  # with U+FE0F, shown as emoji
HANDS = "👆👋👌👍👎👏💪🖐🙌🙏🤝🤞🤷🏃✋✌"
PEOPLE, JOINED = "👨👩🧑", "⚕✈❤🌾🍳🎓🎤🎨💻🔧🚀🚒🦰👦👧👩👨"
TONES = ["", *"🏻🏼🏽🏾🏿"]
FLAG_LETTERS = [*map(chr, range(0x1F1E6, 0x1F200))]
# Pieces of emoji, and characters of phones and word processors that corpora lack.
RARE = f"{JOINER}{AS_EMOJI}\u20e3 {' '.join([*TONES, *FLAG_LETTERS])} ’‘“”«»–—€£¥"
# First and last letter of Greek, Cyrillic, Hebrew, Arabic, Devanagari, Hiragana,
# Chinese and Korean.
SCRIPTS = "αω", "ая", "את", "اغ", "अह", "あん", "一龥", "가힣"
# Occurs in addresses and in numbers with several parts, which are not changed inside.
WHOLE = r"://|@|[\w{marks}]\.\w[\w{marks}]|\d[:/-]\d"
SENTENCE_END = re.compile(r"[\s.!?…。！？।؟]*")
# Not part of a word or of another number, and neither 0 nor 1.
NUMBER = re.compile(
    r"(?<![^\W_])(?<!\d[.,])(?![01]\b(?![.,]\d))[0-9]+(?:[.,][0-9]+)*(?![^\W_])"
)
# Fractions of the pairs with things to copy.
ALONE, IN_PLACE, TWO = 0.2, 0.7, 0.3

# The texts of a pair, a random generator, words of other texts -> the texts of a pair.
Change = Callable[[str, str, Random, Sequence[str]], tuple[str, str]]


class Noise(NamedTuple):
    """One kind of noise: its name, a part of its seed; and a change of pairs."""

    name: str
    share: float  # number of pairs with this noise per pair of the corpus
    change: Change


def as_people_write(
    source: str, target: str, random: Random, words: Sequence[str]
) -> tuple[str, str]:
    """Changes some sources slightly, but not their translations.

    Of fifty sources, four are in lower case, three begin with a small letter, two are
    in title case, two have no punctuation, and five have one or two typos. A third of
    the straight quotation marks, apostrophes and dashes are typographic.
    """
    chosen = random.random() * 50
    if chosen < 4:
        source = source.lower()
    elif chosen < 7:
        lone = re.sub(r"\b[A-Z]\b", lambda letter: letter[0].lower(), source[1:])
        source = source[:1].lower() + lone
    elif chosen < 9:
        source = re.sub(r"(?<!\S)\w", lambda letter: letter[0].upper(), source)
    elif chosen < 11 and not re.search(r"\d", source):  # "1.5" and "$15" stay
        source = without_punctuation(source)
    elif chosen < 16:
        source = _with_typos(source, random)
    if random.random() < 1 / 3:
        source = re.sub(r'"([^"]*)"', r"“\1”", source).replace("'", "’")
        source = source.replace(" - ", f" {random.choice('–—')} ")
    return source, target


def with_thing_to_copy(
    source: str, target: str, random: Random, words: Sequence[str]
) -> tuple[str, str]:
    """Replaces or inserts things, such as numbers or addresses, in both sides.

    A thing replaces a name or number that occurs once on both sides, or is put at the
    beginning or the end of both, or after their only comma. A fifth of the pairs
    consist only of such things, from which copying is learned fastest.
    """
    if random.random() < ALONE:
        things = random_thing(random, words)
        while len(things) < len(source) / 2:
            things += f" {random_thing(random, words)}"
        return things, things
    spans = _once(source), _once(target)
    others = {
        word: _other(word, random, words)
        for word in sorted(spans[0].keys() & spans[1].keys())
        if random.random() < IN_PLACE
    }
    inserted = {}
    if not others or random.random() < TWO:
        places = ["first", "last", "last", "end", "end"]
        if source.count(", ") == target.count(", ") == 1:
            places += ["comma"] * 3
        chosen = random.sample(places, 2 if random.random() < TWO else 1)
        for place in dict.fromkeys(chosen):
            inserted[place] = random_thing(random, words)
    marks = random.choice(["", " "]), random.random() < 0.5
    return tuple(
        _with_things(text, of_text, others, inserted, *marks)
        for text, of_text in zip((source, target), spans, strict=True)
    )


# Pairs of the corpus itself have the noise of `as_people_write`. Upper case takes
# several times as many pieces, and a thing to copy about ten, so both have separate
# batches. Half of all texts stay as they are.
IN_ALL = Noise("people", 1.0, as_people_write)
BESIDE = (
    Noise("upper", 0.1, lambda source, target, *_: (source.upper(), target)),
    Noise("copy", 0.25, with_thing_to_copy),
)


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
            noisy = self._noisy(pair, random, words)
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

    def _noisy(self, pair, random, words):
        """Adds noise to a pair, after the leading symbols of each side."""
        heads = [self._head.match(text)[0] for text in pair]
        bodies = map(str.removeprefix, pair, heads)
        return tuple(map(str.__add__, heads, self._change(*bodies, random, words)))


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

    Every tenth line is repeated in upper case, with a thing to copy, and every 20th in
    lower case.
    """
    random = Random(0)
    yield RARE
    for index, line in enumerate(lines):
        yield line
        if index % 10 == 0:
            make = random.choice([_number, _date, _url, _email])  # in ASCII
            yield f"{line.upper()} {make(random, words_of_letters(line))}"
        if index % 20 == 0:
            yield line.lower()


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
        typos = two, one * 2 + two, random.choice(LETTERS) + two, *[two + one] * 3
        text = "".join([*written[:i], random.choice(typos), *written[i + 2 :]])
    return text


def _with_things(text, spans, others, inserted, gap, drops_point):
    """Replaces words, given by their spans, and inserts things at places by name."""
    body, marks = split_last_marks(text)
    for word in sorted(others, key=spans.get, reverse=True):
        start, end = spans[word]
        body = body[:start] + others[word] + body[end:]
    if "comma" in inserted:
        body = body.replace(", ", f", {inserted['comma']} ", 1)
    if "first" in inserted:
        body = f"{inserted['first']} {body}"
    if "last" in inserted and SENTENCE_END.fullmatch(marks):
        body, marks = f"{body} {inserted['last']}{gap}", marks.strip()
    elif "last" in inserted:
        marks += f" {inserted['last']}"
    if "end" in inserted:
        marks = "" if marks == "." and drops_point else marks
        marks += f" {inserted['end']}"
    return f"{body}{marks}".strip()


def _once(text):
    """The numbers and capitalised words that occur once in a text, with positions."""
    counts = Counter(word[0] for word in words(text)) | Counter(NUMBER.findall(text))
    whole = with_marks(WHOLE)
    text = re.sub(
        r"\S+", lambda x: " " * len(x[0]) if whole.search(x[0]) else x[0], text
    )
    names = [
        word
        for word in words(text)
        if len(word[0]) > 2
        and without_marks(word[0]).istitle()
        and text[max(0, word.start() - 1)] not in "'’-"
    ]
    return {
        each[0]: each.span()
        for each in (*names, *NUMBER.finditer(text))
        if counts[each[0]] == 1
    }


def _other(word, random, words):
    """A number of the same form, or mostly another name."""
    if word.isdigit():
        digits = random.choice([1, 1, 2, 2, 3, 3, 4, 5, 6, 7])
        return str(random.randrange(2, 10**digits))
    if word[0].isdigit():
        return re.sub(r"\d", lambda _: random.choice(DIGITS[1:]), word)
    return (_name if random.random() < 0.7 else random_thing)(random, words)


def random_thing(random: Random, words: Sequence[str]) -> str:
    """Something to copy, such as a number, an address, a name of `words`, or emoji."""
    (make,) = random.choices(list(THINGS), THINGS.values())
    return make(random, words)


def _number(random, words):
    number = int(_repeating(random, DIGITS, random.randint(1, 7)))
    form = random.choice(["{}", "{}", "{}", "{}", "{:,}", "{} %", "#{}", "{}.5"])
    return form.format(number)


def _phone(random, words):
    groups = [random.randrange(10, 10000) for _ in range(random.randint(2, 5))]
    start = random.choice(["", "0", "+", "00"])
    return start + random.choice(" -.").join(map(str, groups))


def _date(random, words):
    year, month, day = (random.randint(*x) for x in ((1900, 2099), (1, 12), (1, 31)))
    return random.choice(
        [
            f"{year}-{month:02}-{day:02}",
            f"{year}-{month:02}-{day:02}",
            f"{day:02}.{month:02}.{year}",
            f"{month}/{day}/{year}",
            f"{random.randrange(24)}:{random.randrange(60):02}",
        ]
    )


def _url(random, words):
    host = random.choice(["https://www.", "https://", "http://", "www."])
    host += f"{_word(random, words)}.{random.choice(['org', 'com', 'de', 'net', 'eu'])}"
    pages = [_part(random, words) for _ in range(random.randint(0, 3))]
    query = ""
    if random.random() < 0.4:
        name = random.choice([_word(random, words), "id", "q", "page"])
        query = (
            f"?{name}={random.choice([_part(random, words), random.choice(LETTERS)])}"
        )
    return "/".join([host, *pages]) + query


def _email(random, words):
    name = random.choice(["", f"{_word(random, words)}{random.choice('._')}"])
    host = random.choice(["org", "com", "de", "net"])
    return f"{name}{_part(random, words)}@{_word(random, words)}.{host}"


def _name(random, words):
    parts = [_word(random, words) for _ in range(random.choice([1, 2, 2, 2, 3]))]
    return " ".join(part[:1].upper() + part[1:] for part in parts)


def _emoji(random, words):
    """One to three emoji, of which some are sequences of code points."""
    tone, other = random.choice(TONES), random.choice(JOINED)
    other += AS_EMOJI if ord(other) < 0x3000 else ""
    forms = [
        random.choice(EMOJI),
        random.choice(TEXT_EMOJI) + AS_EMOJI,
        random.choice(HANDS) + tone,
        JOINER.join([random.choice(PEOPLE) + tone, other]),
        "".join(random.choices(FLAG_LETTERS, k=2)),
        f"{random.choice(DIGITS)}{AS_EMOJI}\u20e3",
    ]
    made = random.choices(forms, [4, 2, 1, 2, 1, 0.3], k=random.choice([1, 1, 2, 3]))
    return random.choice(["", "", " "]).join(made)


def _symbols(random, words):
    length = random.randint(1, 6)
    few = random.sample(SYMBOLS, random.choice([1, 1, 2, 3]))
    return "".join(random.choice(few) for _ in range(length))


def _foreign(random, words):
    first, last = map(ord, random.choice(SCRIPTS))
    lengths = [random.randint(1, 6) for _ in range(random.choice([1, 1, 2, 3]))]
    return " ".join(
        "".join(chr(random.randint(first, last)) for _ in range(n)) for n in lengths
    )


def _part(random, words):
    word = _word(random, words)
    number = int(_repeating(random, DIGITS, random.randint(1, 5)))
    return random.choice([word, str(number)])


def _word(random, words):
    """A word, two halves of words, or random letters, in lower case."""
    kind = random.random()
    if kind < 0.3 or not words:
        return _repeating(random, LETTERS, random.randint(2, 8))
    one, two = (letters(random.choice(words).lower()) for _ in range(2))
    if kind < 0.6:
        return "".join(one)
    return "".join(one[: (len(one) + 1) // 2] + two[len(two) // 2 :])


def _repeating(random, characters, length):
    """Random characters, one in four of which repeats the previous character.

    The second of two equal characters is the most likely to be lost in copying.
    """
    text = random.choice(characters)
    while len(text) < length:
        again = random.random() < 0.25
        text += text[-1] if again else random.choice(characters)
    return text


# The frequency of each, out of 24.
THINGS: dict[Callable[[Random, Sequence[str]], str], int] = {
    _number: 4,
    _date: 2,
    _phone: 2,
    _url: 3,
    _email: 3,
    _name: 4,
    _emoji: 4,
    _symbols: 1,
    _foreign: 1,
}
