import math

import beam_reference as reference
import keras
import numpy as np
import pytest
from automaton import END, PAD, Automaton
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


def test_shapes_and_dtypes():
    model = Automaton.random(6, seed=0)
    for n_best, count in ((None, 5), (2, 2)):
        ids, scores = beam_search(
            model, FIRST, beam_size=5, max_length=7, n_best=n_best
        )
        assert tuple(ids.shape) == (2, count, 7) and tuple(scores.shape) == (2, count)
        dtypes = [keras.backend.standardize_dtype(x.dtype) for x in (ids, scores)]
        assert dtypes == ["int32", "float32"]


# Everything there is


@pytest.mark.parametrize("exponent", [0, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("vocabulary_size, limit", [(4, 4), (6, 3)])
def test_wide_beam_finds_everything(vocabulary_size, limit, penalty, exponent):
    model = Automaton.random(vocabulary_size, seed=vocabulary_size, max_length=limit)
    sources = [[7, 5, 90], [11], [3, 150]]
    score = PENALTIES[penalty](exponent)
    truth = [
        reference.everything(model.next_log_probs(source), limit, score)
        for source in sources
    ]
    count = len(truth[0])
    ids, scores = beam_search(
        model,
        padded(sources),
        beam_size=count,
        length_penalty=exponent,
        length_normalization=penalty,
    )
    assert (np.diff(array(scores), axis=1) <= 0).all()
    for row, row_scores, expected in zip(
        array(ids, "int32").tolist(), array(scores), truth, strict=True
    ):
        said = [without_pads(tokens, limit) for tokens in row]
        found = dict(zip(said, row_scores, strict=True))
        assert found.keys() == expected.keys()
        np.testing.assert_allclose(
            list(found.values()), [expected[tokens] for tokens in found], rtol=1e-5
        )


def without_pads(said, limit):
    """The tokens up to the end; pads before it, or at the limit, were said."""
    return tuple(said[: said.index(END) + 1] if END in said else said[:limit])


@pytest.mark.parametrize("vocabulary_size", [3, 4])
def test_places_without_a_hypothesis_have_pads_and_no_score(vocabulary_size):
    model = Automaton.random(vocabulary_size, seed=5)
    score = gnmt(0.6)
    truth = [
        reference.everything(model.next_log_probs(source), 3, score).items()
        for source in (4, 9)
    ]
    expected = [sorted(((s, said) for said, s in row), reverse=True) for row in truth]
    found = beam_search(
        model, np.array([[4], [9]]), beam_size=len(truth[0]) + 3, max_length=3
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


def test_each_row_ends_at_its_own_limit():
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


def test_one_beam_is_greedy_search():
    model = Automaton.random(7, seed=3, end_logit=-1.0)
    source = np.arange(1, 41)[:, None]
    ids, scores = beam_search(model, source, beam_size=1, max_length=LENGTH)
    greedy = array(greedy_search(model, source, max_length=LENGTH), "int32")
    np.testing.assert_array_equal(array(ids, "int32")[:, 0], greedy)
    assert len(set((greedy != PAD).sum(axis=1))) > 3
    assert np.isfinite(array(scores)).all()


def test_one_beam_is_greedy_also_where_the_second_best_would_win():
    probabilities = [[1e-9, 1e-9, 0.51, 0.49], [1e-9, 1e-9, 1.0, 1e-9]]
    model = Automaton(np.log(probabilities), np.ones((2, 4), int))
    wins = (math.log(0.49) * (6 / 7) ** 0.6, (A, END))
    loses = (math.log(0.51), (END,))
    assert wins > loses
    source = np.array([[2]])
    assert_found(beam_search(model, source, beam_size=1, max_length=5), [[loses]])
    assert_found(beam_search(model, source, beam_size=2, max_length=5), [[wins, loses]])
    np.testing.assert_array_equal(greedy_search(model, source, max_length=1), [[END]])


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


# A real model, whose cache is reordered with the beams


@pytest.mark.full
def test_scores_are_those_of_the_whole_model(trained_translator):
    model = trained_translator.model
    sentences = ["red two", "nine", "tree one zero river eight tree small ten"]
    source = padded(trained_translator.tokenizer.encode(sentences))
    ids, scores = beam_search(
        model, source, beam_size=3, length_penalty=0.8, max_length=9
    )
    ids = array(ids, "int32")
    np.testing.assert_array_equal(
        ids[:2, 0], greedy_search(model, source, max_length=9)[:2]
    )
    for row, own in enumerate(source):
        for k, said in enumerate(ids[row]):
            said = said[said != PAD]
            feed = {
                "source_ids": own[own != PAD][None],
                "target_ids": np.array([[model.start_id, *said[:-1]]]),
            }
            logits = array(model(feed), "float64")[0]
            log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            total = log_probs[np.arange(len(said)), said].sum()
            assert abs(gnmt(0.8)(total, len(said)) - scores[row, k]) < 1e-3
