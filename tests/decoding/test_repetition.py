"""Searches in which nothing is said four times in a row, and what is such a loop."""

import random

import beam_reference as reference
import numpy as np
import pytest
from automaton import PAD, Automaton
from beam_reference import NEAR_TIE, assert_found, constrained, gnmt, told
from checks import array
from models import ids, make_model
from repeated_tokens import loops

from keras_vanilla.decoding import (
    CompiledSearch,
    DecodingConfig,
    beam_search,
    greedy_search,
    run_search,
)
from keras_vanilla.decoding.constraints import looping_tokens, repeats

LENGTH, BEAMS, EXPONENT = 23, 3, 1.5
SCORE = gnmt(EXPONENT)


def constrained_by_loops(log_probs, prefix=()):
    return constrained(log_probs, prefix, 1, lambda said, _: loops(said))


def rows_with_repetitions(count):
    draw = random.Random(0)
    for _ in range(count):
        row = []
        for _ in range(draw.randrange(12)):
            block = [
                draw.randint(1, 3) for _ in range(draw.choice([1, 2, 3, 5, 10, 16, 17]))
            ]
            row += block * draw.choice([1, 1, 2, 3, 4])
        yield row[: draw.randrange(80)]


def test_looping_tokens_are_those_that_a_reader_finds():
    found = 0
    rows = [row for row in rows_with_repetitions(1200) if not loops(row)]
    for length in {len(row) for row in rows}:
        batch = [row for row in rows if len(row) == length]
        padded = np.array([row + [0] * (80 - length) for row in batch], "int32")
        received = array(looping_tokens(padded, np.int32(length)), "int32")
        for row, tokens in zip(batch, received.tolist(), strict=True):
            expected = {token for token in (1, 2, 3) if loops([*row, token])}
            found += bool(expected)
            assert {*tokens} - {-1} == expected, row
    assert found > 20


def test_three_lengths_may_forbid_three_tokens():
    inner = [1, 1, 1, 2] * 3 + [1, 1, 1]
    row = [*inner, 3] * 3 + inner
    received = looping_tokens(np.array([row], "int32"), np.int32(len(row)))
    assert {*array(received, "int32")[0].tolist()} == {-1, 1, 2, 3}


def test_rows_that_repeat_are_those_that_a_reader_finds():
    rows = list(rows_with_repetitions(600))
    padded = np.array([row + [0] * (80 - len(row)) for row in rows])
    expected = [loops(row) for row in rows]
    assert 100 < sum(expected) < 500
    assert array(repeats(padded, 0), "bool").tolist() == expected


@pytest.fixture(scope="module")
def loopy():
    """A model of few states, and sources in whose search nothing is a near-tie."""
    model = Automaton.random(6, seed=5, states=41, end_logit=-1.0)
    clear = []
    for source in range(1, model.states):
        log_probs = constrained_by_loops(model.next_log_probs(source))
        if reference.margin(log_probs, LENGTH, BEAMS, SCORE) > NEAR_TIE:
            clear.append(source)
    assert len(clear) > 15
    return model, clear


def test_greedy_search_takes_the_best_that_does_not_loop(loopy):
    model, sources = loopy
    batch = np.array(sources)[:, None]
    free = array(greedy_search(model, batch, max_length=LENGTH), "int32").tolist()
    received = greedy_search(model, batch, max_length=LENGTH, no_loops=True)
    received = array(received, "int32").tolist()
    changed = 0
    for source, row, without in zip(sources, received, free, strict=True):
        log_probs = constrained_by_loops(model.next_log_probs(source))
        [(_, tokens)] = reference.beam(log_probs, LENGTH, 1, gnmt(0))
        assert row == told(tokens, LENGTH)
        assert not loops([token for token in row if token])
        looped = loops([token for token in without if token])
        assert looped == (row != without)  # what does not loop stays what it is
        changed += looped
    assert 5 < changed < len(sources)


def test_beam_search_finds_what_the_definition_does(loopy):
    model, sources = loopy
    batch = np.array(sources)[:, None]
    config = DecodingConfig(beam_size=BEAMS, length_penalty=EXPONENT, max_length=LENGTH)
    results = beam_search(model, batch, config, no_loops=True)
    expected = [
        reference.beam(
            constrained_by_loops(model.next_log_probs(source)), LENGTH, BEAMS, SCORE
        )
        for source in sources
    ]
    assert_found(results, expected)
    free = array(beam_search(model, batch, config)[0])
    assert (free != array(results[0])).any(axis=(1, 2)).sum() > 5


def test_where_the_source_repeats_the_output_may_loop(loopy):
    model, sources = loopy
    batch = np.array(sources)[:, None]
    free = array(greedy_search(model, batch, max_length=LENGTH), "int32")
    # Four times the number of states: the state that the model begins in is the same.
    repeated = np.repeat([[model.states]], 4, axis=1).repeat(len(batch), axis=0)
    batch = np.concatenate([batch, repeated], axis=1)
    received = greedy_search(model, batch, max_length=LENGTH, no_loops=True)
    np.testing.assert_array_equal(array(received, "int32"), free)


def test_a_prefix_may_loop(loopy):
    model, sources = loopy
    prefix = np.full((1, 6), 4)
    received = greedy_search(
        model, [[sources[0]]], max_length=LENGTH, target_prefix=prefix, no_loops=True
    )
    row = array(received, "int32")[0].tolist()
    assert row[:6] == [4] * 6 and row[6] != 4


@pytest.mark.full
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_compiled_search_finds_the_same(beam_size):
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
