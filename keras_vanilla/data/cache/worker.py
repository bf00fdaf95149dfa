"""The program of a process that makes parts of a token cache."""

import contextlib
import pickle

from keras_vanilla.data.cache.parts import PartMaker
from keras_vanilla.data.cache.workers import send


def work(orders, answers):
    """Makes parts until nobody orders more.

    Args:
        orders: binary stream of pickles: `PartMaker`'s settings, then jobs.
        answers: binary stream for what becomes of them.
    """
    maker = PartMaker(*pickle.load(orders))
    with contextlib.suppress(EOFError):
        while True:
            job = pickle.load(orders)
            try:
                made = maker.make(job, lambda lines: send(answers, ("lines", lines)))
                send(answers, ("made", made))
            except Exception as error:
                send(answers, ("failed", error))
