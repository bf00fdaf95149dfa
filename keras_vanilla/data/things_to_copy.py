"""Generates things that are not translated: numbers, addresses, names, emoji."""

from collections.abc import Callable, Sequence
from random import Random

from keras_vanilla._graphemes import letters

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
SYMBOLS = "!?.,;:-+*/=<>()[]{}%&#@~_|$§"
EMOJI = (*range(0x1F300, 0x1F600), *range(0x1F600, 0x1F650), *range(0x1F680, 0x1F6C6))
# First and last letter of some alphabets and syllabaries.
SCRIPTS = (
    (0x03B1, 0x03C9),  # Greek
    (0x0430, 0x044F),  # Cyrillic
    (0x05D0, 0x05EA),  # Hebrew
    (0x0627, 0x063A),  # Arabic
    (0x0905, 0x0939),  # Devanagari
    (0x3042, 0x3093),  # Hiragana
    (0x4E00, 0x9FA5),  # Chinese
    (0xAC00, 0xD7A3),  # Korean
)


def random_thing(random: Random, words: Sequence[str]) -> str:
    """A number, date, address, e-mail address, name, emoji, symbols or foreign words.

    Args:
        random: `random.Random`, which determines the result.
        words: list of str, from which names and addresses are made; if it is empty,
            they are made from letters.
    """
    (make,) = random.choices(list(THINGS), THINGS.values())
    return make(random, words)


def plain_thing(random: Random, words: Sequence[str]) -> str:
    """Same as `random_thing`, with only those characters that occur in English text."""
    return random.choice([_number, _date, _url, _email])(random, words)


def _number(random, words):
    number = int(_repeating(random, DIGITS, random.randint(1, 9)))
    form = random.choice(["{}", "{}", "{}", "{:,}", "{} %", "#{}"])
    return random.choice([form.format(number), f"{random.randrange(1000) / 10}"])


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
    return chr(random.choice(EMOJI))


def _symbols(random, words):
    length = random.randint(1, 6)
    few = random.sample(SYMBOLS, random.choice([1, 1, 2, 3]))
    return "".join(random.choice(few) for _ in range(length))


def _foreign(random, words):
    first, last = random.choice(SCRIPTS)
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


# The frequency of each, out of 22.
THINGS: dict[Callable[[Random, Sequence[str]], str], int] = {
    _number: 4,
    _date: 2,
    _url: 4,
    _email: 4,
    _name: 4,
    _emoji: 2,
    _symbols: 1,
    _foreign: 1,
}
