"""The program of a process that makes parts of a token cache."""

import contextlib
import pickle
import sys

from keras_vanilla.text.cache.parts import PartMaker
from keras_vanilla.text.cache.workers import send


def _work(orders, answers):
    """What a worker does until nobody gives it more."""
    maker = PartMaker(*pickle.load(orders))
    with contextlib.suppress(EOFError):
        while True:
            job = pickle.load(orders)
            try:
                made = maker.make(job, lambda lines: send(answers, ("lines", lines)))
                send(answers, ("made", made))
            except Exception as error:
                send(answers, ("failed", error))


if __name__ == "__main__":
    _work(sys.stdin.buffer, sys.stdout.buffer)
