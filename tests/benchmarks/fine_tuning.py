"""What fine-tuning gains in a domain of one's own, and what it costs outside of it.

    python tests/benchmarks/fine_tuning.py en-fr --new new.en new.fr --new-test \
      new-test.en new-test.fr --old train.en train.fr --old-test test.en test.fr

Trains on the first 500 and 3,000 pairs of the new text, alone and with as much old text
(replay), and measures BLEU on both tests: sacreBLEU's, with 4 beams. The tests' pairs
must not be in the text that is trained on.
"""

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path

from keras_vanilla import Translator
from keras_vanilla.cli.console import model_path
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import train_translator
from keras_vanilla.translation import score

SETTINGS = {"learning_rate": 5e-4, "epochs": 8, "cooldown_epochs": 8, "average_last": 1}


def main():
    options = parsed()
    old, new = (ParallelCorpus.from_files(*each) for each in (options.old, options.new))
    tests = [
        ParallelCorpus.from_files(*each)
        for each in (options.old_test, options.new_test)
    ]
    print(f"{'BLEU':<40}{'old text':>9}{'new text':>9}{'seconds':>9}", flush=True)

    def measure(name, translator, seconds=0.0):
        scores = [score(translator, each, beam_size=4).bleu for each in tests]
        print(f"{name:<40}{scores[0]:9.1f}{scores[1]:9.1f}{seconds:9.0f}", flush=True)

    translator = Translator.load(options.model)
    measure("before", translator)
    for count in options.count:
        some = new[:count]
        both = some + old[: len(some)]
        measure(f"{len(some):,} pairs", *trained(some, translator))
        measure(f"{len(some):,}, with as much old text", *trained(both, translator))


def trained(corpus, translator):
    """The fine-tuned translator and the seconds that it took."""
    since = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, quiet():
        result = train_translator(
            corpus,
            Path(folder) / "run",
            translator=translator.copy(),
            **SETTINGS,
        )
    return result, time.perf_counter() - since


@contextlib.contextmanager
def quiet():
    """Without the display of each epoch."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        yield


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=model_path, help="en-fr, or a .keras file")
    for name in ("new", "new-test", "old", "old-test"):
        parser.add_argument(f"--{name}", nargs=2, metavar="FILE", required=True)
    parser.add_argument("--count", type=int, nargs="+", default=[500, 3000])
    return parser.parse_args()


if __name__ == "__main__":
    main()
