"""What a translator copies and what confuses it: generated inputs, classified outputs.

    python tests/benchmarks/probe.py MODEL.keras [--no-loops] [--failures]
    python tests/benchmarks/probe.py en-fr --forms tests/benchmarks/probe_en_fr.tsv

Addresses, numbers, dates, emoji and names should be copied; capitals, typos and missing
punctuation should not change the translation. Single words, long and repeated text,
other scripts, symbols and empty text often cause repetition or hallucination. The
inputs are the same in each run. MODEL is anything that `keras-vanilla translate` takes.

A table of forms has a kind, a sentence, and a pattern that its translation must have,
in which spaces are of any width or absent. Its sentences are in no training text.
"""

import argparse
import random
import re
import statistics
from typing import NamedTuple

from keras_vanilla._graphemes import (
    letters,
    split_last_marks,
    with_marks,
    without_punctuation,
    words,
)
from keras_vanilla.bulk import open_line_translator
from keras_vanilla.data.corpus import read_lines
from keras_vanilla.translation.evaluation import bleu_and_chrf

TIMES = 4  # in a row; repeating a word twice is normal, four times is a loop
# Any 2 to 40 characters, not only white space, repeated in a row.
REPEATED = re.compile(rf"(\S.{{1,39}}?)\1{{{TIMES - 1},}}", re.DOTALL)
MOST_GROWTH = 3.0  # characters of a translation per character of the source
SHORT = 20  # additional characters that any translation may have
MOST_FAILURES = 10
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
    """One input."""

    kind: str
    text: str
    kept: str | None = None  # the translation must contain it unchanged
    clean: str | None = None  # the text without noise, with the same translation


def made_probes(sentences, count):
    """Makes `count` inputs of every kind; equal sentences result in equal inputs."""
    sentences = [text for text in sentences if len(text.split()) > 1]
    draw = random.Random(0)
    return [
        probe
        for make in (clean, to_copy, noisy, lengths, strange)
        for probe in make(sentences, count, draw)
    ]


def clean(sentences, count, draw):
    for i in range(count):
        yield Probe("clean", sentences[i % len(sentences)])


def to_copy(sentences, count, draw):
    """Yields sentences with a text that is the same in every language."""
    for kind, make in THINGS.items():
        for i in range(count):
            sentence, thing = sentences[i % len(sentences)], make(draw)
            body, end = split_last_marks(sentence)
            # A full stop after an address would be read as a part of it.
            after = " " if kind in ("URL", "e-mail") else ""
            yield Probe(kind, f"{body} {thing}{after}{end.strip()}", kept=thing)


def noisy(sentences, count, draw):
    """Yields sentences that are written differently, with the same meaning."""
    for kind, change in NOISE.items():
        for i in range(count):
            sentence = sentences[i % len(sentences)]
            yield Probe(kind, change(sentence, draw), clean=sentence)


def lengths(sentences, count, draw):
    """Yields single words, many sentences, and words that are repeated many times."""
    different = sorted({word[0] for text in sentences for word in words(text)})
    for i in range(count):
        yield Probe("one word", different[i % len(different)])
    for i in range(count):
        some = (sentences[(i + j) % len(sentences)] for j in range(2 + i % (LONG - 1)))
        yield Probe("long", " ".join(some))
    for i in range(count):
        yield Probe("repeated", " ".join([different[i % len(different)]] * (3 + i)))


def strange(sentences, count, draw):
    """Yields texts in another script, texts of only symbols, and empty texts."""
    for i in range(count):
        yield Probe("another script", OTHER_SCRIPTS[i % len(OTHER_SCRIPTS)])
    for i in range(count):
        yield Probe("symbols", SYMBOLS[i % len(SYMBOLS)] * (1 + i // len(SYMBOLS)))
    for i in range(count):
        yield Probe("empty", " " * i)


def url(draw):
    host, page = draw.sample(WORDS, 2)
    return f"https://www.{host}.org/{page}/{draw.randrange(100, 9999)}?id={page[0]}"


def email(draw):
    name, host = draw.choice(LAST).lower(), draw.choice(WORDS)
    return f"{name}.{draw.randrange(10, 99)}@{host}.org"


def number(draw):
    return str(draw.randrange(1000, 10 ** draw.randrange(4, 8)))


def date(draw):
    year, month, day = 1950 + draw.randrange(80), draw.randrange(12), draw.randrange(28)
    return f"{year}-{month + 1:02}-{day + 1:02}"


def emoji(draw):
    return draw.choice(EMOJI)


def name(draw):
    return f"{draw.choice(FIRST)} {draw.choice(LAST)}"


def typos(text, draw):
    """Swaps two neighbouring letters of one word, or removes one."""
    written = letters(text)
    pairs = enumerate(zip(written, written[1:], strict=False))
    positions = [i for i, (a, b) in pairs if a != b and (a[0] + b[0]).isalpha()]
    if not positions:
        return text
    i = draw.choice(positions)
    swapped = written[i + 1] + written[i] if draw.random() < 0.5 else written[i]
    return "".join([*written[:i], swapped, *written[i + 2 :]])


def title_case(text, draw):
    """Returns Python's title case, corrected for letters after combining marks."""
    inside = with_marks(r"(?<=[{marks}])\w")
    return inside.sub(lambda letter: letter[0].lower(), text.title())


THINGS = {
    "URL": url,
    "e-mail": email,
    "number": number,
    "date": date,
    "emoji": emoji,
    "name": name,
}
NOISE = {
    "upper case": lambda text, draw: text.upper(),
    "title case": title_case,
    "no punctuation": lambda text, draw: without_punctuation(text),
    "double spaces": lambda text, draw: text.replace(" ", "  "),
    "typos": typos,
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
}


def repeats(text):
    """Whether any text with a letter or digit occurs four times in a row."""
    return any(re.search(r"\w", match[1]) for match in REPEATED.finditer(text + " "))


def has_loop(source, translation):
    """Whether a translation has a loop that its source does not have."""
    return repeats(translation) and not repeats(source)


def is_too_long(source, translation):
    return len(translation.strip()) > MOST_GROWTH * len(source.strip()) + SHORT


def fails(probe, translation):
    lost = probe.kept is not None and probe.kept not in translation
    arguments = probe.text, translation
    return lost or has_loop(*arguments) or is_too_long(*arguments)


def row(kind, pairs, translations):
    """One line of the table: the numbers of one kind of inputs."""
    copied = [p.kept in translation for p, translation in pairs if p.kept is not None]
    noise = [
        (translation, translations[p.clean]) for p, translation in pairs if p.clean
    ]
    growth = statistics.median(len(t) / max(1, len(p.text)) for p, t in pairs)
    cells = [
        f"{len(pairs)}",
        f"{sum(copied) / len(copied):.0%}" if copied else "",
        f"{sum(has_loop(p.text, translation) for p, translation in pairs)}",
        f"{sum(is_too_long(p.text, translation) for p, translation in pairs)}",
        f"{growth:.2f}",
        f"{bleu_and_chrf(*zip(*noise, strict=True)).bleu:.1f}" if noise else "",
    ]
    return "".join([kind.ljust(16), *(cell.rjust(9) for cell in cells)])


def print_forms(path, translate, shows_failures):
    """Prints how many translations of each kind in a table match their pattern."""
    rows = [line.split("\t") for line in read_lines(path)]
    translations = translate([sentence for _, sentence, _ in rows])
    results = {}
    for (kind, sentence, pattern), translation in zip(rows, translations, strict=True):
        wanted = pattern.replace(" ", "\\s?")
        is_right = re.search(wanted, translation.text) is not None
        results.setdefault(kind, []).append(is_right)
        if shows_failures and not is_right:
            print(f"{kind}: {sentence!r} -> {translation.text!r}")
    for kind, right in results.items():
        print(f"{kind.ljust(16)}{sum(right):4} of {len(right)}")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--language", default="de", choices=SENTENCES)
    parser.add_argument("--sentences", help="a file of other sentences, one per line")
    parser.add_argument("--forms", help="a table of sentences and patterns")
    parser.add_argument("--count", type=int, default=50, help="inputs of each kind")
    parser.add_argument("--failures", action="store_true", help="show what went wrong")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--no-loops", action="store_true")
    return parser.parse_args()


def main():
    options = parsed()
    search = {"beam_size": options.beam_size} if options.beam_size > 1 else {}
    search |= {"no_loops": True} if options.no_loops else {}
    translate = open_line_translator(options.model, **search)
    if options.forms:
        return print_forms(options.forms, translate, options.failures)
    sentences = SENTENCES[options.language]
    if options.sentences:
        sentences = read_lines(options.sentences)
    probes = made_probes(sentences, options.count)
    texts = [p.clean or p.text for p in probes] + [p.text for p in probes]
    texts = list(dict.fromkeys(texts))
    results = [translation.text for translation in translate(texts)]
    translations = dict(zip(texts, results, strict=True))
    kinds = {}
    for probe in probes:
        kinds.setdefault(probe.kind, []).append((probe, translations[probe.text]))
    names = "lines", "copied", "loops", "too long", "length", "BLEU"
    print("kind".ljust(16), *(name.rjust(9) for name in names), sep="")
    for kind, pairs in kinds.items():
        print(row(kind, pairs, translations))
    pairs = [pair for kind in kinds.values() for pair in kind]
    copied = [p.kept in translation for p, translation in pairs if p.kept is not None]
    loops = sum(has_loop(p.text, translation) for p, translation in pairs)
    print(f"copied {sum(copied) / len(copied):.1%}, loops {loops} of {len(pairs):,}")
    for kind, pairs in kinds.items() if options.failures else ():
        failures = [(p.text, t) for p, t in pairs if fails(p, t)]
        for text, translation in failures[:MOST_FAILURES]:
            print(f"{kind}: {text[:200]!r} -> {translation[:200]!r}")


if __name__ == "__main__":
    main()
