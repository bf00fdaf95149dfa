import math

import beam_reference as reference
import keras
import numpy as np
import pytest
from automaton import END, Automaton
from beam_reference import NEAR_TIE, assert_found, clear_sources, gnmt, power
from checks import array
from tiers import in_full
from word_reversal import padded

from keras_vanilla.decoding import beam_search, greedy_search

PENALTIES = {"gnmt": gnmt, "power": power}


# A model written by hand: tokens, and in which state what is how likely

A, B = 3, 4
LOG = np.log(
    [  # pad, start, end, A, B
        [1e-9, 1e-9, 0.2, 0.5, 0.3],  # first
        [1e-9, 1e-9, 1 / 8, 5 / 8, 1 / 4],  # after A
        [1e-9, 1e-9, 3 / 4, 1 / 8, 1 / 8],  # after B
        [1e-9, 1e-9, 1 / 2, 1 / 4, 1 / 4],  # after A A
    ]
)
AFTER = np.array([[0, 0, 0, 1, 2], [0, 0, 0, 3, 3], [0, 0, 0, 3, 3], [3] * 5])
FIRST = np.array([[4], [8]])  # multiples of the number of states


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (
            {"length_normalization": "power", "length_penalty": 1.0},
            [(math.log(5 / 32) / 3, (A, A, END)), (math.log(0.225) / 2, (B, END))],
        ),
        (
            {"length_normalization": "gnmt", "length_penalty": 1.0},
            [
                (math.log(0.225) * 6 / 7, (B, END)),
                (math.log(5 / 32) * 6 / 8, (A, A, END)),
            ],
        ),
        (
            {"length_penalty": 0},
            [(math.log(0.225), (B, END)), (math.log(5 / 32), (A, A, END))],
        ),
        (
            {"length_normalization": "power", "length_penalty": 1.0, "max_length": 2},
            [(math.log(5 / 16) / 2, (A, A)), (math.log(0.225) / 2, (B, END))],
        ),
        ({"length_penalty": 0, "n_best": 1}, [(math.log(0.225), (B, END))]),
        (
            {"length_penalty": 0, "max_length": 1},
            [(-math.log(2), (A,)), (math.log(0.3), (B,))],
        ),
    ],
)
def test_hypotheses_and_scores_worked_out_by_hand(arguments, expected):
    model = Automaton(LOG, AFTER, max_length=3)
    found = beam_search(model, FIRST, beam_size=2, **arguments)
    assert_found(found, [expected, expected])


# Everything there is


@pytest.mark.parametrize("exponent", [0, 0.6, 1.7])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("vocabulary_size, limit", [(3, 3), (4, 4), (6, 3)])
def test_wide_beam_finds_everything(vocabulary_size, limit, penalty, exponent):
    """Places without a hypothesis have pads and no score."""
    model = Automaton.random(vocabulary_size, seed=vocabulary_size, max_length=limit)
    sources = [[7, 5, 90], [11], [3, 150]]
    score = PENALTIES[penalty](exponent)
    expected = []
    for source in sources:
        truth = reference.everything(model.next_log_probs(source), limit, score)
        expected.append(sorted(((s, said) for said, s in truth.items()), reverse=True))
    found = beam_search(
        model,
        padded(sources),
        beam_size=len(expected[0]) + 3,
        length_penalty=exponent,
        length_normalization=penalty,
    )
    assert_found(found, expected)


# A narrow beam, against the definition in plain Python

LENGTH = 8
NARROW = [(1, 1), (2, 1), (3, 3), (4, 2), (5, 5)]


@pytest.mark.parametrize(
    "penalty, exponent", [("gnmt", 0.6), ("power", 1.0), ("gnmt", 0)]
)
@pytest.mark.parametrize("beam_size, n_best", NARROW)
def test_narrow_beam_finds_what_the_definition_does(
    beam_size, n_best, penalty, exponent
):
    model = Automaton.random(6, seed=beam_size, end_logit=-0.5)
    score = PENALTIES[penalty](exponent)
    sources = clear_sources(model, LENGTH, beam_size, score, 40)
    expected = [
        reference.beam(model.next_log_probs(s), LENGTH, beam_size, score, n_best)
        for s in sources
    ]
    assert len({len(said) for row in expected for _, said in row}) > 4
    found = beam_search(
        model,
        np.array(sources)[:, None],
        beam_size=beam_size,
        length_penalty=exponent,
        length_normalization=penalty,
        max_length=LENGTH,
        n_best=n_best,
    )
    assert_found(found, expected)


def test_row_ends_at_its_limit():
    """50 more than its own source has, whatever that is padded to."""
    model = Automaton.random(5, seed=0, states=9973, end_logit=-9.0, max_length=53)
    sources = [[20], [30, 40, 50], [60, 70, 80, 90, 100], [7, 8]]
    limits = [51, 53, 53, 52]
    score = gnmt(0.6)
    expected = []
    for source, limit in zip(sources, limits, strict=True):
        log_probs = model.next_log_probs(source)
        assert reference.margin(log_probs, limit, 3, score) > NEAR_TIE
        expected.append(reference.beam(log_probs, limit, 3, score))
    lengths = [[len(said) for _, said in row] for row in expected]
    assert [max(row) for row in lengths] == limits
    assert_found(beam_search(model, padded(sources), beam_size=3), expected)


# One beam


def test_one_beam_is_greedy_where_second_best_would_win():
    probabilities = [[1e-9, 1e-9, 0.51, 0.49], [1e-9, 1e-9, 1.0, 1e-9]]
    model = Automaton(np.log(probabilities), np.ones((2, 4), int))
    wins = (math.log(0.49) * (6 / 7) ** 0.6, (A, END))
    loses = (math.log(0.51), (END,))
    assert wins > loses
    source = np.array([[2]])
    assert_found(beam_search(model, source, beam_size=1, max_length=5), [[loses]])
    ids, scores = beam_search(model, source, beam_size=2, max_length=5)
    assert_found((ids, scores), [[wins, loses]])
    np.testing.assert_array_equal(greedy_search(model, source, max_length=1), [[END]])
    dtypes = [keras.backend.standardize_dtype(x.dtype) for x in (ids, scores)]
    assert dtypes == ["int32", "float32"]


def test_pads_follow_the_end():
    model, other = (Automaton.random(6, seed=8) for _ in range(2))
    other.pad_id = 5
    source = np.arange(1, 41)[:, None]
    ids, others = (
        array(beam_search(each, source, max_length=LENGTH)[0], "int32")
        for each in (model, other)
    )
    after_the_end = np.cumsum(ids == END, axis=2) - (ids == END) > 0
    np.testing.assert_array_equal(others, np.where(after_the_end, 5, ids))
    assert not ids[after_the_end].any() and after_the_end.any()


# The end of the search


def test_row_alone_does_not_stop_too_soon():
    """Rows that would be others; in a batch the others would keep it going."""
    model, score = Automaton.random(6, seed=8, end_logit=-0.5), gnmt(2.0)
    settings = {"beam_size": 4, "length_penalty": 2.0, "max_length": LENGTH}
    compared = 0
    for source in clear_sources(model, LENGTH, 4, score, 150):
        search = model.next_log_probs(source), LENGTH, 4, score, 2
        right = reference.beam(*search)
        if right != reference.beam(*search, stop=reference.stop_by_the_length_so_far):
            found = beam_search(model, [[source]], **settings, n_best=2)
            assert_found(found, [right])
            compared += 1
    assert compared > 9


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


# Padding, order, company


@pytest.mark.parametrize("max_length", [6, *in_full(None)])
def test_padding_order_and_company_change_nothing(max_length):
    model = Automaton.random(6, seed=2, end_logit=1.0)  # all end long before 50
    draw = np.random.default_rng(0)
    rows = [draw.integers(3, 90, draw.integers(1, 8)) for _ in range(9)]
    source = padded(rows)
    ids, scores = (array(x) for x in beam_search(model, source, max_length=max_length))
    assert (ids[0] != ids[1]).any()

    def assert_same(other_source, order):
        found = beam_search(model, other_source, max_length=max_length)
        other_ids, other_scores = (array(values) for values in found)
        common = min(ids.shape[2], other_ids.shape[2])
        np.testing.assert_array_equal(other_ids[:, :, :common], ids[order, :, :common])
        assert not other_ids[:, :, common:].any() and not ids[order, :, common:].any()
        np.testing.assert_allclose(other_scores, scores[order], rtol=1e-6)

    order = draw.permutation(len(rows))
    assert_same(np.pad(source, ((0, 0), (0, 5))), slice(None))
    assert_same(source[order], order)
    for i, row in enumerate(rows):
        assert_same(row[None], [i])
