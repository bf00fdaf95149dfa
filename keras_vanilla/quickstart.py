"""The whole road on a corpus that is generated here: a first run of a few minutes."""

import sys
from pathlib import Path

from keras_vanilla import export
from keras_vanilla._types import PathLike
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import train_translator

UNSEEN = 300
LEAST_EXACT = 0.95
SHOWN = 10
SETTINGS = {
    "preset": "tiny",
    "vocabulary_size": 480,
    "epochs": 3,
    "tokens_per_batch": 4096,
    "warmup_steps": 400,
    "average_last": 1,
}
ABOUT = {
    "name": "English numbers and dates in French",
    "source_language": "en",
    "target_language": "fr",
    "data": "numbers and dates, as num2words and babel write them",
}


def run(output: PathLike) -> float:
    """Trains, tests, exports and verifies a translator of numbers and dates.

    English to French, from words that num2words and babel make; training and test never
    share a number or a date. Writes `translator.keras`, `translator.tflite` with its
    model card and `saved_model/` into `output`, beside the files of `train_translator`.

    Args:
        output: path of a folder that does not exist yet.
    Returns:
        Float: the share of unseen items translated exactly.
    Raises:
        FileExistsError: if `output` exists.
        RuntimeError: if less than 95 % are exact, or an export translates otherwise.
        ImportError: if the extra "demo" is not installed.
    """
    folder = Path(output)
    corpus = ParallelCorpus.numbers("en", "fr")
    train, validation, test = corpus.split(UNSEEN, UNSEEN)
    print(
        f"{len(train):,} pairs to learn from, {len(test)} to be tested on",
        file=sys.stderr,
    )
    translator = train_translator(train, folder, validation, **SETTINGS)
    sources, references = list(test.sources), list(test.targets)
    translations = translator.translate(sources)
    exact = sum(map(str.__eq__, translations, references)) / len(references)
    rows = list(zip(sources, translations, references, strict=True))
    for row in rows[:: UNSEEN // SHOWN]:
        print("\n  source      {}\n  translated  {}\n  reference   {}".format(*row))
    print(f"\n{exact:.1%} of {UNSEEN} unseen items are translated exactly\n")
    if exact < LEAST_EXACT:
        raise RuntimeError(f"At least {LEAST_EXACT:.0%} were expected to be exact.")
    file = folder / "translator.tflite"
    export.saved_model(translator, folder / "saved_model")
    export.tflite(translator, file, check="structure", **ABOUT)  # the rest follows
    for path in (folder / "saved_model", file):
        report = export.verify(translator, path, sources)
        print(report, end="\n\n")
        if not report.passed:
            raise RuntimeError(f"{path} does not translate as the translator does.")
    print(f'Next: keras-vanilla translate {folder}/translator.keras "seventy-one"')
    print(f"      keras-vanilla serve-web {file}")
    return exact
