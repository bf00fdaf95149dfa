"""Searches that repeat nothing four times in a row, except what may repeat."""

import random

import beam_reference as reference
import numpy as np
import pytest
from automaton import PAD, Automaton
from beam_reference import NEAR_TIE, assert_found, constrained, gnmt, told
from checks import array
from models import ids, make_model
from repeated_tokens import NUMBER, ends_loop, loops, repeated_texts

from keras_vanilla.decoding import (
    CompiledSearch,
    DecodingConfig,
    LoopGuard,
    beam_search,
    greedy_search,
    run_search,
)

LENGTH, BEAMS, EXPONENT = 23, 3, 1.5
SCORE = gnmt(EXPONENT)
SIZE = 9  # ids


def random_row(draw, length):
    row = []
    while len(row) < length:
        count = draw.choice([1, 1, 2, 3, 5, 10, 16, 17])
        block = [draw.randrange(1, SIZE) for _ in range(count)]
        row += block * draw.choice([1, 1, 2, 3, 4, 5])
    return row[:length]


def random_tables(draw):
    """Texts of source ids, how often they repeat them, and texts of target ids."""
    source = [draw.randrange(6) for _ in range(SIZE)]
    times = [draw.choice([1, 1, 1, 2, 4]) for _ in range(SIZE)]
    target = [draw.choice([NUMBER, *range(6), *range(6)]) for _ in range(SIZE)]
    return source, times, target


@pytest.mark.parametrize("seed", range(24))
def test_guard_equals_definition(seed):
    draw = random.Random(seed)
    source, times, target = [*range(SIZE)], [1] * SIZE, [*range(SIZE)]
    guard = LoopGuard()
    if seed % 3:
        source, times, target = random_tables(draw)
        guard = LoopGuard(*(np.array(table) for table in (source, times, target)))
    rows = [random_row(draw, draw.randrange(1, 70)) for _ in range(4)]
    repeated = array(guard.repeated_texts(padded(rows), PAD), "int32")
    index, shape = draw.randrange(75), (4, 3)
    said = np.array([[random_row(draw, 80) for _ in range(3)] for _ in rows], "int32")
    received = array(guard.looping_tokens(said, np.int32(index), repeated), "int32")
    for b, row in enumerate(rows):
        texts = repeated_texts([source[x] for x in row], [times[x] for x in row])
        assert {*repeated[b].tolist()} - {-1} == texts
        for k in range(shape[1]):
            before = said[b, k, :index].tolist()
            expected = {
                x for x in range(SIZE) if ends_loop([*before, x], target, texts)
            }
            assert {*received[b, k].tolist()} - {-1} == expected


def padded(rows):
    width = max(map(len, rows))
    return np.array([row + [PAD] * (width - len(row)) for row in rows], "int32")


def test_three_lengths_may_forbid_three_tokens():
    inner = [1, 1, 1, 2] * 3 + [1, 1, 1]
    row = np.array([[[*inner, 3] * 3 + inner]], "int32")
    received = LoopGuard().looping_tokens(row, np.int32(row.size), np.array([[-1]]))
    assert {*array(received, "int32").ravel().tolist()} == {-1, 1, 2, 3}


# Id 3 is a number, id 4 is the text that a source of four times 41 repeats: 41 is the
# number of states, so that the state that the model begins in is the same.
TEXTS = np.array([0, 1, 2, NUMBER, 4, 5])
SOURCE_TEXTS = np.append(np.arange(100, 141), 4)
CASES = {
    "ids alone": ([], True, range(6), set()),
    "number": ([], LoopGuard(SOURCE_TEXTS, None, TEXTS), TEXTS, set()),
    "source repeats": ([41] * 4, LoopGuard(SOURCE_TEXTS, None, TEXTS), TEXTS, {4}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A model of few states, sources whose search has no near-tie, and the truth."""
    more, no_loops, texts, repeated = CASES[request.param]
    model = Automaton.random(6, seed=5, states=41, end_logit=-1.0)

    def rule(said, _):
        return ends_loop(said, texts, repeated)

    clear = {}
    for source in range(1, model.states):
        log_probs = constrained(model.next_log_probs(source), (), 1, rule)
        if reference.margin(log_probs, LENGTH, BEAMS, SCORE) > NEAR_TIE:
            clear[source] = log_probs
    assert len(clear) > 12
    batch = np.array([[source, *more] for source in clear])
    return model, batch, no_loops, [*clear.values()]


def test_greedy_search_equals_definition(case):
    model, batch, no_loops, truth = case
    free = array(greedy_search(model, batch, max_length=LENGTH), "int32").tolist()
    received = greedy_search(model, batch, max_length=LENGTH, no_loops=no_loops)
    received = array(received, "int32").tolist()
    for row, log_probs in zip(received, truth, strict=True):
        [(_, tokens)] = reference.beam(log_probs, LENGTH, 1, gnmt(0))
        assert row == told(tokens, LENGTH)
    changed = sum(a != b for a, b in zip(free, received, strict=True))
    assert 2 < changed < len(batch)


def test_beam_search_equals_definition(case):
    model, batch, no_loops, truth = case
    config = DecodingConfig(beam_size=BEAMS, length_penalty=EXPONENT, max_length=LENGTH)
    results = beam_search(model, batch, config, no_loops=no_loops)
    expected = [reference.beam(each, LENGTH, BEAMS, SCORE) for each in truth]
    assert_found(results, expected)
    free = array(beam_search(model, batch, config)[0])
    assert (free != array(results[0])).any(axis=(1, 2)).sum() > 2


def test_prefix_may_loop(case):
    model, batch, no_loops, _ = case
    prefix = np.full((len(batch), 6), 5)
    received = greedy_search(
        model, batch, max_length=LENGTH, target_prefix=prefix, no_loops=no_loops
    )
    received = array(received, "int32")
    assert (received[:, :6] == 5).all() and (received[:, 6] != 5).all()


@pytest.mark.full
@pytest.mark.parametrize("beam_size", [1, 3])
def test_compiled_search_finds_the_same(beam_size):
    model = make_model(2, num_encoder_layers=1, num_decoder_layers=1)
    sources = ids([9, 7, 5, 3], 17)
    settings = {"beam_size": beam_size, "max_length": 19}
    config = DecodingConfig(no_loops=True, **settings)
    expected = array(run_search(model, sources, config), "int32")
    received = CompiledSearch(model)(run_search, sources, config=config)
    np.testing.assert_array_equal(received, expected)
    free = run_search(model, sources, DecodingConfig(**settings))
    assert any(
        loops([x for x in row if x != PAD]) for row in array(free, "int32").tolist()
    )
    assert not any(loops([x for x in row if x != PAD]) for row in expected.tolist())
