"""Searches of one model from several threads at once, and one after the other.

    KERAS_BACKEND=jax python thread_probe.py

ends with an error if the two differ.
"""

import threading

import numpy as np
from models import make_decisive_model

from keras_vanilla.decoding import CompiledSearch, beam_search, greedy_search, sample

SOURCES = np.array([[7, 8, 5, 3], [9, 4, 3, 0], [6, 3, 0, 0]])
SHORT = {"max_length": 7}  # without a compiler each step takes long
SCORED = {**SHORT, "return_scores": True}
TWO_SEARCHES = [
    (greedy_search, SOURCES, SCORED),
    (beam_search, SOURCES, {**SHORT, "beam_size": 2}),
]
SEARCHES = [
    *TWO_SEARCHES,
    (greedy_search, SOURCES[1:, :3], SCORED),  # the same graph on another shape
    (sample, SOURCES, {**SHORT, "seed": 1}),
    (sample, SOURCES, {**SHORT, "seed": 2}),
]


def at_once(calls):
    """What each function returns, or raises, when threads call all at one moment."""
    results = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def run(number):
        start.wait()
        try:
            results[number] = calls[number]()
        except Exception as error:  # for the comparison
            results[number] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def check_searches(model, copy, searches):
    """Searches of two equal models, which nothing has called yet."""
    one_by_one, together = CompiledSearch(model), CompiledSearch(copy)
    expected = [one_by_one(*search, **settings) for *search, settings in searches]
    received = at_once(
        [
            lambda search=search, settings=settings: together(*search, **settings)
            for *search, settings in searches * 2
        ]
    )
    for result, wanted in zip(received, expected * 2, strict=True):
        if isinstance(result, Exception):
            raise result
        ids, *scores = result if isinstance(result, tuple) else (result,)
        wanted_ids, *wanted_scores = wanted if isinstance(wanted, tuple) else (wanted,)
        np.testing.assert_array_equal(ids, wanted_ids)
        np.testing.assert_allclose(scores, wanted_scores, rtol=1e-4)


def check_all_models():
    check_searches(make_decisive_model(0.4), make_decisive_model(0.4), SEARCHES)


if __name__ == "__main__":
    check_all_models()
