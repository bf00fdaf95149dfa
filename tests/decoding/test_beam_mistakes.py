"""The ways to get beam search wrong: the check of `test_beam.py` sees each of them."""

import beam_reference as reference
import keras
import numpy as np
import pytest
from automaton import Automaton
from beam_reference import assert_found, clear_sources, gnmt, power

from keras_vanilla.decoding import beam_search

LENGTH = 8
RIGHT = gnmt(2.0)
MISTAKES = {
    "places filled again": {"keep": reference.places_filled_again},
    "ended hypotheses compete": {"keep": reference.ended_ones_compete},
    "ended hypotheses go on": {"keep": reference.ended_ones_go_on},
    "stops too soon": {"stop": reference.stop_by_the_length_so_far},
    "another exponent": {"score": gnmt(1.5)},
    "the other penalty": {"score": power(2.0)},
    "the end not counted": {"score": reference.gnmt_without_the_end(2.0)},
    "no penalty": {"score": gnmt(0)},
}


@pytest.fixture(scope="module")
def penalised():
    """A model, sources and what `beam_search` finds there."""
    model = Automaton.random(6, seed=8, end_logit=-0.5)
    sources = clear_sources(model, LENGTH, 4, RIGHT, 150)
    return model, sources, found_by_beam_search(model, sources)


def found_by_beam_search(model, sources):
    settings = {"beam_size": 4, "length_penalty": 2.0, "max_length": LENGTH}
    return beam_search(model, np.array(sources)[:, None], **settings, n_best=2)


def searched(model, sources, score=RIGHT, **mistake):
    return [
        reference.beam(model.next_log_probs(s), LENGTH, 4, score, 2, **mistake)
        for s in sources
    ]


def test_without_a_mistake_the_check_passes(penalised):
    model, sources, found = penalised
    assert_found(found, searched(model, sources))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_check_sees_the_mistake(mistake, penalised):
    model, sources, found = penalised
    wrong = searched(model, sources, **MISTAKES[mistake])
    assert tokens_of(wrong) != tokens_of(searched(model, sources))  # not scores alone
    with pytest.raises(AssertionError):
        assert_found(found, wrong)


def tokens_of(hypotheses):
    return [[tokens for _, tokens in row] for row in hypotheses]


def test_row_alone_does_not_stop_too_soon(penalised):
    """In a batch the others would keep it going."""
    model, sources, _ = penalised
    right = searched(model, sources)
    wrong = searched(model, sources, **MISTAKES["stops too soon"])
    told_apart = [i for i in range(len(sources)) if right[i] != wrong[i]]
    assert len(told_apart) > 9
    for i in told_apart[:9]:
        assert_found(found_by_beam_search(model, sources[i : i + 1]), [right[i]])


@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="JAX calls a step once, to trace it"
)
@pytest.mark.parametrize(
    "exponent, n_best, steps",
    [
        (0.6, 1, 1),  # log 0.1 / lp(49) is below log 0.8 already
        (4.0, 1, 49),  # here a long one could still win
        (0.0, 2, 2),  # log 0.09, of the second to end, is above log 0.06
        (0.6, 2, 49),  # but not above log 0.06 / lp(49)
        (0.0, 3, 49),
    ],
)
def test_search_stops_when_no_beam_can_still_win(exponent, n_best, steps):
    first = [1e-9, 1e-9, 0.8, 0.1, 0.06]
    later = [1e-9, 1e-9, 0.9, 0.1, 1e-9]
    last = [1e-9, 1e-9, 1e-9, 1.0, 1e-9]
    after = np.array([[0, 0, 0, 1, 2], [1] * 5, [2] * 5])
    model = Automaton(np.log([first, later, last]), after, max_length=49)
    beam_search(
        model, np.array([[3]]), beam_size=3, length_penalty=exponent, n_best=n_best
    )
    assert model.stepped == steps
