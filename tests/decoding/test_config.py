import dataclasses
import functools

import numpy as np
import pytest
from automaton import Automaton

from keras_vanilla.decoding import (
    CompiledSearch,
    DecodingConfig,
    beam_search,
    greedy_search,
    run_search,
    sample,
)
from keras_vanilla.decoding.hypothesis_end import until_end

SOURCE = np.array([[5, 3, 0], [2, 7, 4]], "int32")


def test_config_and_its_fields_are_given_alike():
    config = DecodingConfig(beam_size=3, no_loops=True)
    assert DecodingConfig.of(config, max_length=5) == DecodingConfig(
        beam_size=3, no_loops=True, max_length=5
    )
    assert DecodingConfig.of() == DecodingConfig()
    model = Automaton.random(9, seed=2)
    for search, options in (
        (functools.partial(greedy_search, model), {"no_repeat_ngram_size": 1}),
        (functools.partial(beam_search, model), {"beam_size": 3, "n_best": 2}),
        (functools.partial(sample, model, seed=1), {"no_loops": True}),
        (functools.partial(CompiledSearch(model), beam_search), {"beam_size": 2}),
    ):
        options = {**options, "max_length": 5}
        by_name = search(SOURCE, **options)
        whole = search(SOURCE, config=DecodingConfig(**options))
        for one, other in zip(by_name, whole, strict=True):
            np.testing.assert_array_equal(one, other)


def test_numpy_numbers_become_pythons():
    values = {
        "beam_size": 5,
        "length_penalty": 1.0,
        "max_length": 9,
        "n_best": 2,
        "no_repeat_ngram_size": 3,
        "early_stopping": False,
        "no_loops": True,
    }
    config = DecodingConfig(**{k: np.asarray(v)[()] for k, v in values.items()})
    assert config == DecodingConfig(**values)
    assert hash(config) == hash(dataclasses.replace(config))
    for name, value in values.items():
        assert type(getattr(config, name)) is type(value)


def test_length_penalty_is_that_of_the_paper():
    assert DecodingConfig(length_penalty=0.6).apply_length_penalty(
        -4.0, 7
    ) == pytest.approx(-4.0 / 2**0.6)
    power = DecodingConfig(length_penalty=2, length_normalization="power")
    assert power.apply_length_penalty(-4.0, 2) == pytest.approx(-1)


@pytest.mark.parametrize("prefix", [None, np.array([[3, 4], [5, 0]])])
def test_run_search_runs_the_search_of_its_config(prefix):
    model = Automaton.random(6, seed=0)
    settings = {"max_length": 9, "no_repeat_ngram_size": 1}
    given = {"target_prefix": prefix, "return_scores": True}

    def assert_same(received, expected):
        for ours, theirs in zip(received, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)

    greedy = greedy_search(model, SOURCE, **settings, **given)
    config = DecodingConfig(**settings)
    assert_same(run_search(model, SOURCE, config, **given), greedy)
    assert_same([run_search(model, SOURCE, config, target_prefix=prefix)], greedy[:1])

    settings |= {"beam_size": 3, "length_penalty": 0.9}
    ids, scores = beam_search(model, SOURCE, **settings, target_prefix=prefix)
    config = DecodingConfig(**settings)
    best = run_search(model, SOURCE, config, **given)
    assert_same(best, (ids[:, 0], scores[:, 0]))
    three = DecodingConfig.of(config, n_best=3)
    all_three = run_search(model, SOURCE, three, target_prefix=prefix)
    assert_same(all_three, (ids, scores))


@pytest.mark.parametrize(
    "ids, kept",
    [([5, 3, 0, 2], [5, 3, 0, 2]), ([5, 2, 6], [5, 2]), ([5, 0, 6, 0, 0], [5, 0, 6])]
    + [([0, 0], []), ([], [])],
)
def test_ids_are_kept_until_the_end(ids, kept):
    assert until_end(ids, Automaton.random(6, seed=0)) == kept
