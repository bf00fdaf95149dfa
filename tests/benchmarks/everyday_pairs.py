r"""Makes the English and French text that "en-fr" learns beside Tatoeba.

    pip install babel faker
    python tests/benchmarks/everyday_pairs.py everyday.en everyday.fr --tatoeba \
      train.en train.fr --sentences sentences.tsv --words words.tsv

People type greetings, prices, dates, quotations, names, labels and several sentences at
once, all of which are rare in collections of sentences for learners of a language. Most
of this text consists of Tatoeba's sentences with something added or replaced; the
rest are frames, labels (without the held-out tenth), and other open texts, of whose
technical documentation a third is used. The probe has other frames and values.
"""

import functools
import itertools
import random
import re
import zlib
from collections import Counter
from pathlib import Path

from babel import Locale
from faker import Faker
from pronoun_pairs import files_parser, write_pairs

TIMES = 4  # greetings are few, so each occurs this often
NAMES = "Tom Anna Paul Maria Emma Leo Sophie David".split()
ENGLISH, FRENCH = Locale("en"), Locale("fr")
MONTHS, DAYS = (
    [
        (getattr(ENGLISH, kind)["format"]["wide"][i], name)
        for i, name in sorted(getattr(FRENCH, kind)["format"]["wide"].items())
    ]
    for kind in ("months", "days")
)
LOCALES = "en_US en_GB fr_FR de_DE es_ES it_IT pl_PL nl_NL tr_TR".split()


def _sections():
    """The pairs of the table beside this file, by their first column."""
    sections = {}
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    for section, *pair in (line.split("\t") for line in lines):
        sections.setdefault(section, []).append(tuple(pair))
    return sections


# In a frame, "+ " stands for a sentence, whose final mark comes after the frame, and
# " +" for a sentence after it. After " | " is the French after what a speaker says.
SECTIONS = _sections()


def pairs(tatoeba, sentences, labels, seed=0):
    """Returns all sentences and their translations in a random order."""
    draw = random.Random(seed)
    Faker.seed(seed)
    values = Values(draw)
    short = [
        pair
        for pair in tatoeba
        if len(pair[0].split()) < 13 and '"' not in "".join(pair)
    ]
    made = [
        *_greetings(),
        *sentences,
        *labels,
        *_frames(draw, values, short, 22_000),
        *_numbers(draw, tatoeba, 6_000),
        *_names(draw, values, tatoeba, 7_000),
        *_quotations(draw, values, short, labels, 9_000),
        *_joined(draw, [*short, *sentences], 9_000),
        *_lists(draw, labels, 1_500),
        *lexicon(tatoeba),
    ]
    made += [
        (a[:-1], b[:-1]) for a, b in draw.sample(short, 6_000) if a[-1] == b[-1] == "."
    ]
    draw.shuffle(made)
    return made


def _greetings():
    for source, target in SECTIONS["greeting"]:
        forms = [
            (source, target),
            (f"{source}.", f"{target}."),
            (f"{source}!", f"{target} !"),
        ]
        forms += [(f"{source}, {name}.", f"{target}, {name}.") for name in NAMES[:3]]
        yield from forms * TIMES
    yield from SECTIONS["phrase"] * TIMES


class Values:
    """Random values of the frames' fields, in English and in French."""

    def __init__(self, draw):
        self._draw = draw
        self._fakers = [Faker(locale) for locale in LOCALES]

    def __call__(self, field):
        field = field.rstrip("2")
        english, french = getattr(self, field.lower())()
        if field[0].isupper():
            return english[0].upper() + english[1:], french[0].upper() + french[1:]
        return english, french

    def number(self, decimals=(0,), most=7):
        draw = self._draw
        size = min(most, draw.choice([1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7]))
        places = draw.choice(decimals)
        value = draw.randrange(2, 10**size) + draw.randrange(10**places) / 10**places
        grouped = value >= 10_000 or draw.random() < 0.7
        english = f"{value:,.{places}f}" if grouped else f"{value:.{places}f}"
        return english, english.replace(",", " ").replace(".", ",")

    def n(self):
        return self.number()

    def price(self):
        english, french = self.number((0, 0, 2))
        sign = self._draw.choice("€€€$$£")
        word = {"€": "euros", "$": "dollars", "£": "pounds"}[sign]
        form = self._draw.choice(
            ["{1}{0}", "{1}{0}", "{1}{0}", "{0} {1}", "{0}{1}", "{0} {2}"]
        )
        english = form.format(english, sign, word)
        if word in english:
            return english, f"{french} {word.replace('pounds', 'livres')}"
        return english, f"{french} {sign}"

    def percent(self):
        english, french = self.number(
            (0, 0, 1), most=2 if self._draw.random() < 0.8 else 4
        )
        form = self._draw.choice(["{}%", "{}%", "{} %", "{} percent"])
        return form.format(english), french + (" pour cent" if "t" in form else " %")

    def _measure(self, kind):
        english, french = self.number((0, 0, 1, 2))
        unit, name = self._draw.choice(SECTIONS[kind])
        gap = self._draw.choice([" ", " ", "" if len(unit) < 4 else " "])
        return f"{english}{gap}{unit}", f"{french} {name}"

    distance = functools.partialmethod(_measure, "distance")
    weight = functools.partialmethod(_measure, "weight")
    size = functools.partialmethod(_measure, "size")
    other = functools.partialmethod(_measure, "other")

    def time(self):
        draw = self._draw
        hour, minute = (
            draw.randrange(24),
            draw.choice([0, 15, 30, 45, draw.randrange(60)]),
        )
        french = f"{hour} h {minute:02}" if minute else f"{hour} h"
        if draw.random() < 0.4:
            return f"{hour}:{minute:02}", french
        half = draw.choice(["a.m. p.m.", "am pm", "AM PM"]).split()[hour > 11]
        twelve = (hour + 11) % 12 + 1
        minutes = f":{minute:02}" if minute or draw.random() < 0.3 else ""
        return f"{twelve}{minutes}{draw.choice([' ', ' ', ''])}{half}", french

    def date(self):
        draw = self._draw
        day, year = draw.randrange(1, 29), draw.randrange(1850, 2050)
        month, mois = draw.choice(MONTHS)
        ending = {1: "st", 2: "nd", 3: "rd"}.get(
            day % 10 if day // 10 != 1 else 0, "th"
        )
        english = draw.choice(
            [
                f"{day} {month} {year}",
                f"{day} {month} {year}",
                f"{month} {day}, {year}",
                f"{month} {day}{ending}, {year}",
                f"the {day}{ending} of {month} {year}",
                f"{day} {month}",
                f"{month} {day}",
                f"{month} {day}{ending}",
                f"the {day}{ending} of {month}",
            ]
        )
        french = f"{'1er' if day == 1 else day} {mois}"
        french += f" {year}" if str(year) in english else ""
        if draw.random() < 0.15 and english[0] != "t":
            weekday, jour = draw.choice(DAYS)
            return f"{weekday}, {english}", f"{jour} {french}"
        return english, french

    def month(self):
        (month, mois), year = (
            self._draw.choice(MONTHS),
            self._draw.randrange(1850, 2050),
        )
        return (f"{month} {year}", f"{mois} {year}") if year % 3 else (month, mois)

    def day(self):
        return self._draw.choice(DAYS)

    def phone(self):
        draw = self._draw
        form = draw.choice(
            [
                "555-####",
                "(###) ###-####",
                "###-###-####",
                "+44 ## #### ####",
                "0# ## ## ## ##",
                "+33 # ## ## ## ##",
                "0### #######",
                "+49 ### ######",
            ]
        )
        text = re.sub("#", lambda _: str(draw.randrange(10)), form)
        return text, text

    def name(self, first=None):
        faker = self._draw.choice(self._fakers)
        name = getattr(
            faker, first or self._draw.choice(["first_name", "first_name_male"])
        )()
        if self._draw.random() < 0.4:
            name += f" {faker.last_name()}"
        return name, name

    def city(self):
        return self._draw.choice(SECTIONS["city"])


def _filled(frame, values):
    """Fills the fields of both sides of a frame with the same values."""
    fields = dict.fromkeys(re.findall(r"{(\w+)}", "".join(frame)))
    drawn = {field: values(field) for field in fields}
    english, french = (
        side.format(**{field: value[i] for field, value in drawn.items()})
        for i, side in enumerate(frame)
    )
    return english.replace("..", "."), _elided(french)


def _elided(french):
    """Contracts a preposition before a name that begins with a vowel or article."""
    french = re.sub(r"\b([Dd])e (?=[AEIOUÉÎ])", r"\1'", french)
    return re.sub(r"\bde Le ", "du ", re.sub(r"\bà Le ", "au ", french))


def _frames(draw, values, short, count):
    for _ in range(count):
        frame = draw.choice(SECTIONS["frame"])
        english, french = (side.replace("+ ", "").replace(" +", "") for side in frame)
        english, french = _filled((english, french), values)
        if "+" in frame[0]:
            yield _continued(draw, frame[0], english, french, draw.choice(short))
        else:
            yield english, french


def _continued(draw, frame, english, french, pair):
    """Adds what a frame says to a sentence and to its translation."""
    if frame.startswith("+"):
        bodies = [re.match(r"(.*?)(\W*)$", side).groups() for side in pair]
        added = zip(bodies, (english, french), strict=True)
        one, other = (f"{body} {text}{mark}" for (body, mark), text in added)
        return one.replace("..", "."), other
    keeps = r"I\b|[A-Z]\w* (?!I\b)[A-Z]|Tom\b|Mary\b|[A-Z]{2}"
    one, other = (
        side if re.match(keeps, side) else side[0].lower() + side[1:] for side in pair
    )
    return f"{english} {one}", f"{french} {other}"


def _numbers(draw, tatoeba, count):
    """Yields sentences with one number on both sides, and another number in it."""
    words = dict(SECTIONS["number"])
    names = "|".join(words)
    found = []
    for pair in tatoeba:
        numbers = [re.findall(r"\d+(?:[.,: ]\d+)*", side) for side in pair]
        named = re.findall(rf"\b(?:{names})\b(?![-’'])", pair[0])
        if numbers[0] == numbers[1] and len(numbers[0]) == 1:
            found.append((pair, numbers[0][0], numbers[0][0]))
        elif not any(numbers) and len(named) == 1 and "clock" not in pair[0]:
            french = words[named[0]]
            if len(re.findall(rf"(?<![\w-]){french}(?![\w-])", pair[1])) == 1:
                found.append((pair, named[0], french))
    for _ in range(count):
        (source, target), english, french = draw.choice(found)
        number = str(draw.randrange(2, 10 ** draw.choice([1, 2, 2, 2, 3, 3, 4])))
        numbers = number, number
        if "$" in source or draw.random() < 0.1:
            numbers = Values(draw).number()
        yield (
            re.sub(rf"(?<!\w){re.escape(english)}(?!\w)", numbers[0], source),
            re.sub(rf"(?<!\w){re.escape(french)}(?!\w)", numbers[1], target),
        )


def _names(draw, values, tatoeba, count):
    """Yields sentences with other names and cities."""
    found = []
    for pair in tatoeba:
        for kind, names in {
            "first_name_male": "Tom John",
            "first_name_female": "Mary Marie",
            "city": "Boston Paris London Londres Tokyo",
        }.items():
            names = [
                re.findall(rf"\b(?:{names.replace(' ', '|')})\b", side) for side in pair
            ]
            if len(names[0]) == len(names[1]) == 1:
                found.append((pair, kind, names))
    for _ in range(count):
        pair, kind, names = draw.choice(found)
        drawn = values.city() if kind == "city" else values.name(kind)
        source, target = (
            side.replace(name[0], new)
            for side, name, new in zip(pair, names, drawn, strict=True)
        )
        if not re.search(r"['’]\w*$", target[: target.find(drawn[1])]):
            yield source, _elided(target)


def _quotations(draw, values, short, labels, count):
    """Yields real sentences and labels in quotation marks."""
    for _ in range(count):
        left, right = draw.choice(['""', "““", "“”", "“”", "‘’"])
        right = "”" if left == "“" else right
        if draw.random() < 0.2:
            english, french = draw.choice(labels)
            quotes = f"{left}{english}{right}", f"« {french} »"
            yield tuple(
                side.format(q=q)
                for side, q in zip(draw.choice(SECTIONS["label"]), quotes, strict=True)
            )
            continue
        english, french = draw.choice(short)
        speaker, french_speaker = draw.choice(SECTIONS["speaker"])
        before, after = french_speaker.split(" | ")
        verb, verbe = draw.choice(SECTIONS["speech"])
        manner, maniere = draw.choice(SECTIONS["manner"] + [("", "")] * 6)
        name = values.name()[0]
        if draw.random() < 0.5:
            comma = draw.choice([",", ":", ","])
            one = f"{speaker} {verb}{manner}{comma} {left}{english}{right}"
            other = f"{before} {verbe}{maniere} : « {french} »"
        else:
            inside = re.sub(r"\.$", ",", english)
            who = (
                speaker
                if speaker in ("I", "NAME")
                else speaker[0].lower() + speaker[1:]
            )
            one = f"{left}{inside}{right} {who} {verb}{manner}."
            other = (
                f"« {re.sub(r'[.]$', '', french)} », {after.format(verbe)}{maniere}."
            )
        yield one.replace("NAME", name), other.replace("NAME", name)


def _joined(draw, sentences, count):
    for _ in range(count):
        some = draw.sample(sentences, draw.choice([2, 2, 2, 3, 3, 4]))
        if sum(len(pair[0]) for pair in some) < 400:
            yield tuple(" ".join(side) for side in zip(*some, strict=True))


def _lists(draw, labels, count):
    short = [pair for pair in labels if len(pair[0].split()) < 4]
    for _ in range(count):
        *some, last = draw.sample(short, draw.choice([2, 3, 3, 4, 5]))
        ends = draw.choice([(" and ", " et "), (" or ", " ou "), (", ", ", ")])
        yield tuple(
            ", ".join(pair[i] for pair in some) + ends[i] + last[i] for i in range(2)
        )


def lexicon(tatoeba, least=7, closeness=0.45):
    """Yields words that occur mostly in the same pairs, each the best of the other."""
    word = re.compile(r"aujourd'hui|[^\W\d_]{3,}(?:-[^\W\d_]{3,})*")
    sides = [
        [sorted(set(word.findall(text))) for text in side]
        for side in zip(*tatoeba, strict=True)
    ]
    counts = [Counter(itertools.chain(*side)) for side in sides]
    both = Counter(
        pair
        for words in zip(*sides, strict=True)
        for pair in itertools.product(*words)
        if counts[0][pair[0]] >= least and counts[1][pair[1]] >= least
    )
    dice = {p: 2 * n / (counts[0][p[0]] + counts[1][p[1]]) for p, n in both.items()}
    best = [{}, {}]
    for pair, value in dice.items():
        for side, word in enumerate(pair):
            if value > dice.get(best[side].get(word), closeness):
                best[side][word] = pair
    for english, french in sorted(set(best[0].values()) & set(best[1].values())):
        if english.islower() and french.islower():
            yield english, french
            yield english.capitalize(), french.capitalize()


def is_held_out(label: str) -> bool:
    """Whether a label is in the tenth that no training reads."""
    return zlib.crc32(label.lower().encode()) % 10 == 0


def _table(path, kept):
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [
        (english, french) for english, french, source in rows if kept(english, source)
    ]


def _of_documents(english, source):
    """Whether a sentence is used: of those about programming, one of three."""
    technical = source in ("python-docs", "django-docs")
    return not technical or zlib.crc32(english.encode()) % 3 == 0


def main() -> None:
    parser = files_parser(__doc__)
    parser.add_argument("--tatoeba", type=Path, nargs=2, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sides = (path.read_text(encoding="utf-8").splitlines() for path in options.tatoeba)
    tatoeba = list(zip(*sides, strict=True))
    sentences = _table(options.sentences, _of_documents)
    labels = _table(options.words, lambda english, _: not is_held_out(english))
    everyday = pairs(tatoeba, sentences, labels, options.seed)
    write_pairs(everyday, options.source, options.target)


if __name__ == "__main__":
    main()
