"""Beam search whose finished hypotheses leave the beam, as in Hugging Face's."""

import beam_reference as reference
import numpy as np
import pytest
from automaton import END, Automaton
from beam_reference import assert_found, gnmt, power
from checks import array
from models import ids, make_model

from keras_vanilla.decoding import CompiledSearch, DecodingConfig, beam_search
from keras_vanilla.decoding.trace import trace_search

LENGTH, BEAMS = 9, 3
SCORES = {"gnmt": gnmt(1.5), "power": power(1.5)}
STOPS = [False, True, "never"]


def refilled(log_probs, score, early_stopping, limit=LENGTH):
    """The definition: [(score, tokens)], best first."""
    live, pool = [(0.0, ())], []
    for count in range(1, limit + 1):
        longer = reference.best(reference.continuations(live, log_probs), 2 * BEAMS)
        ended = [one[1][-1] == END or count == limit for one in longer]
        for (log_prob, said), ends in list(zip(longer, ended, strict=True))[:BEAMS]:
            pool += [(score(log_prob, count), said)] * ends
        pool = reference.best(pool, BEAMS)
        live = [one for one, ends in zip(longer, ended, strict=True) if not ends]
        live = live[:BEAMS]
        length = limit if early_stopping == "never" else count
        if not live or len(pool) == BEAMS:
            stops = early_stopping is True or not live
            if stops or score(live[0][0], length) <= pool[-1][0]:
                break
    return pool


@pytest.fixture(scope="module")
def model():
    return Automaton.random(6, seed=3)


@pytest.mark.parametrize("early_stopping", STOPS)
@pytest.mark.parametrize("normalization", SCORES)
def test_search_equals_definition(model, early_stopping, normalization):
    sources = np.arange(1, 40)
    settings = {"length_normalization": normalization, "length_penalty": 1.5}
    results = beam_search(
        model,
        sources[:, None],
        beam_size=BEAMS,
        max_length=LENGTH,
        early_stopping=early_stopping,
        **settings,
    )
    expected = [
        refilled(model.next_log_probs(each), SCORES[normalization], early_stopping)
        for each in sources
    ]
    assert_found(results, expected)


@pytest.mark.full
@pytest.mark.parametrize("early_stopping", STOPS)
def test_cache_with_all_beams_and_rows_that_leave_change_nothing(early_stopping):
    model = make_model(2, num_encoder_layers=1, num_decoder_layers=1)
    sources = ids([9, 7, 5, 3], 17)
    config = DecodingConfig(beam_size=3, max_length=13, early_stopping=early_stopping)
    config = DecodingConfig.of(config, no_repeat_ngram_size=2)
    expected = beam_search(model, sources, config, return_notes=True)
    received = CompiledSearch(model)(beam_search, sources, config, return_notes=True)
    traced = trace_search(beam_search, model, sources, config=config)
    for a, b, c in zip(expected[:2], received[:2], traced.result, strict=True):
        np.testing.assert_allclose(array(b), array(a), atol=1e-4)
        np.testing.assert_allclose(array(c), array(a), atol=1e-4)
    log_probs = array(expected[2]["log_probs"])
    real = array(expected[1]) > -np.inf
    totals = log_probs.sum(axis=2)[real]
    lengths = (array(expected[0]) != 0).sum(axis=2)[real]
    scores = config.apply_length_penalty(totals, lengths)
    np.testing.assert_allclose(scores, array(expected[1])[real], rtol=1e-4)
