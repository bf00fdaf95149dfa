"""The quickstart, a first run of a few minutes on generated data."""

import sys
from pathlib import Path
from typing import NamedTuple

from keras_vanilla import export
from keras_vanilla._about import About
from keras_vanilla._types import PathLike
from keras_vanilla.cli.console import quoted
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import train_translator

LEAST_EXACT = 0.95  # of each kind
SHOWN = 3  # of each kind
SETTINGS = {
    "preset": "tiny",
    "vocabulary_size": 480,
    "epochs": 6,
    "cooldown_epochs": 3,
    "tokens_per_batch": 4096,
    "warmup_steps": 400,
    "average_last": 1,
}
ABOUT = About(
    name="English numbers and dates in French",
    source_language="en",
    target_language="fr",
    data="numbers and dates, as num2words and babel write them",
)


class Kind(NamedTuple):
    """One kind of items from `ParallelCorpus.numbers`, and how they are used.

    Fields:
        chosen: slice of the numbers from 0 to 9,999 and the dates of two centuries.
        tested: int. Number of items for testing, which are not in the training text.
        validated: int. Number of items for validation, not in the training text either.
        repeated: int. Number of times that each other item occurs in the training text,
            so that the few small numbers have enough weight.
    """

    chosen: slice
    tested: int
    validated: int
    repeated: int


# "zero" is not a part of other numbers, so it cannot be inferred from them.
ZERO = Kind(slice(0, 1), 0, 0, 20)
KINDS = {
    "0 to 99": Kind(slice(1, 100), 10, 0, 20),
    "100 to 999": Kind(slice(100, 1_000), 100, 100, 6),
    "1,000 to 9,999": Kind(slice(1_000, 10_000), 300, 100, 1),
    "dates": Kind(slice(10_000, None, 6), 300, 100, 1),
}


class Corpora(NamedTuple):
    """Disjoint numbers and dates for training, validation and testing.

    Fields:
        train: ParallelCorpus in which all kinds have enough weight.
        validation: ParallelCorpus.
        tests: dict of kind -> ParallelCorpus.
    """

    train: ParallelCorpus
    validation: ParallelCorpus
    tests: dict[str, ParallelCorpus]


def corpora(source: str = "en", target: str = "fr") -> Corpora:
    """Creates corpora of numbers and dates in words, balanced by kind.

    Args:
        source: str. Language, such as "en".
        target: str. Language, such as "fr".
    Raises:
        ImportError, ValueError: as in `ParallelCorpus.numbers`.
    """
    items = ParallelCorpus.numbers(source, target)
    train, validation, tests = list(items[ZERO.chosen]) * ZERO.repeated, [], {}
    for name, kind in KINDS.items():
        sizes = [size for size in (kind.tested, kind.validated) if size]
        rest, tests[name], *others = items[kind.chosen].split(*sizes)
        train += list(rest) * kind.repeated
        validation += [pair for other in others for pair in other]
    return Corpora(
        ParallelCorpus.from_pairs(train, origin=items.origin),
        ParallelCorpus.from_pairs(validation, origin=f"{items.origin}, unseen"),
        tests,
    )


def run(output: PathLike) -> dict[str, float]:
    """Trains, tests, exports and verifies a translator of numbers and dates.

    The languages are English and French, with words from num2words and babel. Training
    and test data never share a number or a date. This writes `translator.keras`,
    `translator.tflite` with its model card and `saved_model/` into `output`, in
    addition to the files of `train_translator`.

    Args:
        output: path of a folder that does not exist yet.
    Returns:
        Dict of kind -> share of unseen items that are translated exactly.
    Raises:
        FileExistsError: if `output` exists.
        RuntimeError: if less than 95 % of a kind are exact, or an exported file
            translates differently.
        ImportError: if the extra "demo" is not installed.
    """
    folder = Path(output)
    train, validation, tests = corpora("en", "fr")
    print(
        f"{len(train):,} pairs to learn from, {sum(map(len, tests.values()))} others "
        "to be tested on",
        file=sys.stderr,
    )
    translator = train_translator(train, folder, validation, about=ABOUT, **SETTINGS)
    sources = [source for test in tests.values() for source in test.sources]
    translations = dict(zip(sources, translator.translate(sources), strict=True))
    exact, examples = {}, []
    for name, test in tests.items():
        right = [source for source, target in test if translations[source] == target]
        exact[name] = len(right) / len(test)
        print(f"\n{name}: {len(right)} of {len(test)} unseen items are exact")
        wrong = [pair for pair in test if pair[0] not in right]
        for source, target in [*list(test)[:: -(-len(test) // SHOWN)], *wrong[:SHOWN]]:
            mark = "" if source in right else f"  WRONG: {target}"
            print(f"  {source} -> {translations[source]}{mark}")
        examples += sorted(right, key=len)[-1:]  # the longest is the most interesting
    worst = min(exact, key=exact.get)
    if exact[worst] < LEAST_EXACT:
        raise RuntimeError(
            f"At least {LEAST_EXACT:.0%} of each kind were expected to be exact. "
            f"Received: {exact[worst]:.1%} of {worst}"
        )
    smallest, *examples = examples  # the page starts with an example of several words
    about = ABOUT.updated(About(examples=(*examples, smallest)))
    translator = translator.replace(about=about)
    translator.save(folder / "translator.keras")

    print("\nExporting and verifying", file=sys.stderr)
    file = folder / "translator.tflite"
    export.saved_model(translator, folder / "saved_model")
    export.tflite(translator, file, check="structure")  # `verify` does the rest
    for path in (folder / "saved_model", file):
        report = export.verify(translator, path, sources)
        print("", report, sep="\n")
        if not report.passed:
            raise RuntimeError(f"{path} translates differently from the translator.")
    path = quoted(str(file))
    print(f"\nNext: keras-vanilla translate {path} {quoted(examples[0])}")
    print(f"      keras-vanilla serve-web {path}")
    return exact
