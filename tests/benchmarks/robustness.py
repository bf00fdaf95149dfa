"""BLEU of models on a test set as it is, and on the same with noise in its sources.

    python tests/benchmarks/robustness.py test.de test.en MODEL.keras OTHER.keras

The noise is that of `probe.py`, the same for every model.
"""

import argparse
import random
from pathlib import Path

from probe import NOISE

from keras_vanilla.data import ParallelCorpus
from keras_vanilla.translation import Translator, score


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--beam-size", type=int, default=5)
    return parser.parse_args()


def texts(sources):
    """The test set's sources by the name of their noise."""
    found = {"as it is": sources}
    for name, change in NOISE.items():
        draw = random.Random(0)
        found[name] = [change(source, draw) for source in sources]
    return found


def main():
    options = parsed()
    corpus = ParallelCorpus.from_files(options.source, options.target)
    noisy = texts(list(corpus.sources))
    print("".join(name.rjust(16) for name in ("BLEU", *noisy)))
    for path in options.models:
        translator = Translator.load(path)
        found = [
            score(
                translator,
                ParallelCorpus(sources, list(corpus.targets)),
                beam_size=options.beam_size,
            ).bleu
            for sources in noisy.values()
        ]
        name = Path(path).parent.name or path
        print(name.rjust(16), *(f"{bleu:15.2f}" for bleu in found), flush=True)


if __name__ == "__main__":
    main()
