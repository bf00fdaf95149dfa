"""The inputs: things to copy, noise, lengths and languages, equal in each call."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from keras_vanilla._graphemes import (
    letters,
    split_last_marks,
    with_marks,
    without_punctuation,
    words,
)

COUNT = 50  # per kind
LONG = 40  # sentences in a long input
EMOJI = "😀 🎉 🚲 🐶 🌞 🍕 🍎 👍 🐸 🎸".split()  # each one code point
FIRST = "Anna Jonas Maria Paul Elena Omar Ingrid Luca Sofia Viktor".split()
LAST = "Kowalczyk Brandt Moreau Rossi Lindqvist Haddad Novak Silva Okafor Weber".split()
WORDS = "example news shop travel photo music garden market school river".split()
OTHER_SCRIPTS = (
    "Ο σκύλος τρέχει στο πάρκο.",
    "Собака бежит по парку.",
    "犬が公園を走っています。",
    "الكلب يركض في الحديقة.",
    "狗在公园里跑。",
    "כלב רץ בפארק.",
    "강아지가 공원에서 달려요.",
    "कुत्ता पार्क में दौड़ रहा है।",
)
SYMBOLS = "... !!! ?!? --- *** ### => ;) @@@ §§ ~~~ %% && (( )) [] {} <> // ||".split()


class Probe(NamedTuple):
    """One input.

    Fields:
        kind: str.
        text: str.
        kept: str or None. Text that the translation must contain unchanged.
        clean: str or None. The text without noise; it should have the same translation.
    """

    kind: str
    text: str
    kept: str | None = None
    clean: str | None = None


def made_probes(sentences: Sequence[str], count: int = COUNT) -> list[Probe]:
    """Makes `count` inputs of every kind; equal sentences result in equal inputs.

    Args:
        sentences: list of str in the source language.
        count: int.
    Raises:
        ValueError: if no sentence has two words, or `count` is below 1.
    """
    sentences = [text for text in sentences if len(text.split()) > 1]
    if not sentences:
        raise ValueError("There must be a sentence of two words. Received: none")
    if count < 1:
        raise ValueError(f"`count` must be at least 1. Received: {count}")
    draw = random.Random(0)
    return [
        probe
        for make in (_clean, _to_copy, _noisy, _lengths, _strange)
        for probe in make(sentences, count, draw)
    ]


def _clean(sentences, count, draw) -> Iterator[Probe]:
    for i in range(count):
        yield Probe("clean", sentences[i % len(sentences)])


def _to_copy(sentences, count, draw) -> Iterator[Probe]:
    """Yields sentences with a text that is the same in every language."""
    for kind, make in THINGS.items():
        for i in range(count):
            sentence, thing = sentences[i % len(sentences)], make(draw)
            body, end = split_last_marks(sentence)
            # A full stop after an address would be read as a part of it.
            after = " " if kind in ("URL", "e-mail") else ""
            yield Probe(kind, f"{body} {thing}{after}{end.strip()}", kept=thing)


def _noisy(sentences, count, draw) -> Iterator[Probe]:
    """Yields sentences that are written differently, with the same meaning."""
    for kind, change in NOISE.items():
        for i in range(count):
            sentence = sentences[i % len(sentences)]
            yield Probe(kind, change(sentence, draw), clean=sentence)


def _lengths(sentences, count, draw) -> Iterator[Probe]:
    """Yields single words, many sentences, and words that are repeated many times."""
    different = sorted({word[0] for text in sentences for word in words(text)})
    for i in range(count):
        yield Probe("one word", different[i % len(different)])
    for i in range(count):
        some = (sentences[(i + j) % len(sentences)] for j in range(2 + i % (LONG - 1)))
        yield Probe("long", " ".join(some))
    for i in range(count):
        yield Probe("repeated", " ".join([different[i % len(different)]] * (3 + i)))


def _strange(sentences, count, draw) -> Iterator[Probe]:
    """Yields texts in another script, texts of only symbols, and empty texts."""
    for i in range(count):
        yield Probe("another script", OTHER_SCRIPTS[i % len(OTHER_SCRIPTS)])
    for i in range(count):
        yield Probe("symbols", SYMBOLS[i % len(SYMBOLS)] * (1 + i // len(SYMBOLS)))
    for i in range(count):
        yield Probe("empty", " " * i)


def _url(draw: random.Random) -> str:
    host, page = draw.sample(WORDS, 2)
    return f"https://www.{host}.org/{page}/{draw.randrange(100, 9999)}?id={page[0]}"


def _email(draw: random.Random) -> str:
    name, host = draw.choice(LAST).lower(), draw.choice(WORDS)
    return f"{name}.{draw.randrange(10, 99)}@{host}.org"


def _number(draw: random.Random) -> str:
    return str(draw.randrange(1000, 10 ** draw.randrange(4, 8)))


def _date(draw: random.Random) -> str:
    year, month, day = 1950 + draw.randrange(80), draw.randrange(12), draw.randrange(28)
    return f"{year}-{month + 1:02}-{day + 1:02}"


def _emoji(draw: random.Random) -> str:
    return draw.choice(EMOJI)


def _name(draw: random.Random) -> str:
    return f"{draw.choice(FIRST)} {draw.choice(LAST)}"


def _typos(text: str, draw: random.Random) -> str:
    """Swaps two neighbouring letters of one word, or removes one."""
    written = letters(text)
    pairs = enumerate(zip(written, written[1:], strict=False))
    positions = [i for i, (a, b) in pairs if a != b and (a[0] + b[0]).isalpha()]
    if not positions:
        return text
    i = draw.choice(positions)
    swapped = written[i + 1] + written[i] if draw.random() < 0.5 else written[i]
    return "".join([*written[:i], swapped, *written[i + 2 :]])


def _title_case(text: str, draw: random.Random) -> str:
    """Returns Python's title case, corrected for letters after combining marks."""
    inside = with_marks(r"(?<=[{marks}])\w")
    return inside.sub(lambda letter: letter[0].lower(), text.title())


THINGS: dict[str, Callable[[random.Random], str]] = {
    "URL": _url,
    "e-mail": _email,
    "number": _number,
    "date": _date,
    "emoji": _emoji,
    "name": _name,
}
NOISE: dict[str, Callable[[str, random.Random], str]] = {
    "upper case": lambda text, draw: text.upper(),
    "title case": _title_case,
    "no punctuation": lambda text, draw: without_punctuation(text),
    "double spaces": lambda text, draw: text.replace(" ", "  "),
    "typos": _typos,
}


SENTENCES = {
    "de": (
        "Ein Mann liest eine Zeitung.",
        "Zwei Kinder spielen im Garten.",
        "Die Frau wartet auf den Bus.",
        "Der Hund läuft über die Wiese.",
        "Eine Gruppe von Menschen steht am Bahnhof.",
        "Das Mädchen trägt ein rotes Kleid.",
        "Ein Koch bereitet das Essen vor.",
        "Der Junge wirft einen Ball.",
        "Viele Leute sitzen in einem Park.",
        "Eine alte Frau verkauft Blumen auf dem Markt.",
    ),
    "en": (
        "A man is reading a newspaper.",
        "Two children are playing in the garden.",
        "The woman is waiting for the bus.",
        "The dog is running across the meadow.",
        "A group of people is standing at the station.",
        "The girl is wearing a red dress.",
        "A cook is preparing the meal.",
        "The boy is throwing a ball.",
        "Many people are sitting in a park.",
        "An old woman is selling flowers at the market.",
    ),
    "es": (
        "Un hombre lee un periódico.",
        "Dos niños juegan en el jardín.",
        "La mujer espera el autobús.",
        "El perro corre por el prado.",
        "Un grupo de personas está en la estación.",
        "La niña lleva un vestido rojo.",
        "Un cocinero prepara la comida.",
        "El niño lanza una pelota.",
        "Mucha gente está sentada en un parque.",
        "Una anciana vende flores en el mercado.",
    ),
    "fr": (
        "Un homme lit un journal.",
        "Deux enfants jouent dans le jardin.",
        "La femme attend le bus.",
        "Le chien court dans le pré.",
        "Un groupe de personnes attend à la gare.",
        "La fille porte une robe rouge.",
        "Un cuisinier prépare le repas.",
        "Le garçon lance un ballon.",
        "Beaucoup de gens sont assis dans un parc.",
        "Une vieille femme vend des fleurs au marché.",
    ),
}
