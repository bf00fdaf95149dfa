"""Compiled searches, and graphs of unknown shapes, find what the plain search finds."""

import keras
import numpy as np
import pytest
from automaton import Automaton
from checks import array
from tiers import in_full
from word_reversal import padded

from keras_vanilla.decoding import (
    CompiledSearch,
    Terms,
    beam_search,
    greedy_search,
)

PREFIXES = [(5, 3), (), (4,), (3, 5, 3, 5), (5, 5, 5)]


def nothing(rows, call):
    return {}


def prefix(rows, call):
    order = np.roll(np.arange(rows), call)
    return {"target_prefix": padded([PREFIXES[i] for i in order])}


def terms(rows, call):
    ids = np.random.default_rng(call).integers(3, 6, (rows, 2, 1, 2))
    inside = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]], bool)
    return {"terms": Terms(ids, np.ones((rows, 2), int), inside)}


NO_BIGRAM_TWICE = {"max_length": 7, "no_repeat_ngram_size": 2}
BEAMS = {"beam_size": 3, "length_normalization": "power", "n_best": 2, "max_length": 7}


@pytest.mark.parametrize(
    ("search", "settings", "inputs"),
    [
        (greedy_search, NO_BIGRAM_TWICE, prefix),
        (beam_search, NO_BIGRAM_TWICE, prefix),
        (beam_search, BEAMS, nothing),
        *in_full((beam_search, {"max_length": 9, "beam_size": 3}, terms)),
    ],
)
def test_compiled_finds_the_same_and_is_traced_once(search, settings, inputs):
    model, eager = (Automaton.random(6, seed=4, end_logit=-0.5) for _ in range(2))
    compiled, traced = CompiledSearch(model), []
    on_tensorflow = keras.backend.backend() == "tensorflow"  # once for all shapes
    for call, shape in enumerate([(4, 5), (4, 5), (1, 8) if on_tensorflow else (4, 5)]):
        source = np.random.default_rng(call).integers(3, 90, shape).astype("int32")
        given = {**settings, **inputs(shape[0], call)}
        received = keras.tree.flatten(compiled(search, source, **given))
        traced.append(model.encoded)
        expected = keras.tree.flatten(search(eager, source, **given))
        for ours, theirs in zip(received, expected, strict=True):
            assert ours.dtype == keras.backend.standardize_dtype(theirs.dtype)
            np.testing.assert_allclose(ours, array(theirs), rtol=1e-6)
    if keras.backend.backend() != "torch":  # which traces nothing
        assert len(set(traced)) == 1
