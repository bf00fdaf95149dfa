"""Target prefixes and n-grams that may not repeat, in every search."""

import beam_reference as reference
import numpy as np
import pytest
from automaton import END, PAD, START, Automaton
from beam_reference import NEAR_TIE, assert_found, constrained, gnmt, told
from checks import array
from models import ids, make_model
from word_reversal import padded

from keras_vanilla.decoding import (
    beam_search,
    greedy_search,
    sample,
)

LENGTH, BEAMS, EXPONENT = 8, 3, 1.5
SCORE = gnmt(EXPONENT)
PREFIXES = [(5, 3), (), (4,), (3, 5, 3, 5), (5, 5, 5)]
SETTINGS = {
    "prefix": (PREFIXES, None),
    "no token twice": (None, 1),
    "no bigram twice": (None, 2),
    "no trigram twice": (None, 3),
    "prefix, no bigram twice": (PREFIXES, 2),
}


def case(prefixes, ngram_size, count=40):
    """A model, and sources and their prefixes in whose search nothing is a near-tie."""
    model = Automaton.random(6, seed=3, end_logit=-1.0)
    clear = []
    for source in range(1, model.states):
        prefix = prefixes[source % len(prefixes)] if prefixes else ()
        log_probs = constrained(model.next_log_probs(source), prefix, ngram_size)
        if reference.margin(log_probs, LENGTH, BEAMS, SCORE) > NEAR_TIE:
            clear.append((source, prefix))
        if len(clear) == count:
            break
    sources, prefixes = zip(*clear, strict=True)
    assert len(clear) == count
    return model, np.array(sources), prefixes


def arguments(prefixes, ngram_size):
    given = {"max_length": LENGTH, "no_repeat_ngram_size": ngram_size}
    return {**given, "target_prefix": padded(prefixes)} if any(prefixes) else given


def found_by_beam_search(model, sources, prefixes, ngram_size):
    settings = arguments(prefixes, ngram_size)
    return beam_search(
        model, sources[:, None], beam_size=BEAMS, length_penalty=EXPONENT, **settings
    )


@pytest.fixture(scope="module", params=SETTINGS)
def one(request):
    """A case, and what beam search finds there."""
    prefixes, ngram_size = SETTINGS[request.param]
    model, sources, prefixes = case(prefixes, ngram_size)
    found = found_by_beam_search(model, sources, prefixes, ngram_size)
    return model, sources, prefixes, ngram_size, found


def test_beam_search_equals_definition(one):
    model, sources, prefixes, ngram_size, found = one
    expected = []
    for source, prefix in zip(sources, prefixes, strict=True):
        log_probs = constrained(model.next_log_probs(source), prefix, ngram_size)
        expected.append(reference.beam(log_probs, LENGTH, BEAMS, SCORE))
    assert_found(found, expected)
    free = found_by_beam_search(model, sources, [()], None)
    changed = (array(free[0]) != array(found[0])).any(axis=(1, 2))
    assert changed.sum() > 5


def test_greedy_search_and_single_best_sample_equal_definition(one):
    model, sources, prefixes, ngram_size, _ = one
    settings = arguments(prefixes, ngram_size)
    said, scores = greedy_search(
        model, sources[:, None], return_scores=True, **settings
    )
    for source, prefix, row, score in zip(
        sources, prefixes, array(said, "int32"), array(scores), strict=True
    ):
        log_probs = constrained(model.next_log_probs(source), prefix, ngram_size)
        [(total, tokens)] = reference.beam(log_probs, LENGTH, 1, gnmt(0))
        np.testing.assert_array_equal(row, told(tokens, LENGTH))
        assert score == pytest.approx(total, rel=1e-5)
    sampled = sample(model, sources[:, None], top_k=1, seed=1, **settings)
    np.testing.assert_array_equal(sampled, said)


@pytest.mark.parametrize("ngram_size", [None, 1, 2])
def test_wide_beam_finds_all_allowed_hypotheses(ngram_size):
    """By brute force: of all hypotheses there are, those that keep the rules."""
    model, limit = Automaton.random(5, seed=1, max_length=4), 4
    sources, prefixes = [[7, 5, 90], [11], [3, 150]], [(4,), (), (3, 4)]
    truth = [
        {
            said: score
            for said, score in reference.everything(
                model.next_log_probs(source), limit, SCORE
            ).items()
            if said[: len(prefix)] == prefix
            and not (ngram_size and repeats_after(said, len(prefix), ngram_size))
        }
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    beams = max(map(len, truth))
    found = beam_search(
        model,
        padded(sources),
        beam_size=beams,
        length_penalty=EXPONENT,
        target_prefix=padded(prefixes),
        no_repeat_ngram_size=ngram_size,
    )
    expected = [sorted(((s, said) for said, s in row.items()))[::-1] for row in truth]
    assert_found(found, expected)


def repeats_after(said, start, size):
    """Whether a token after the first `start` completes an n-gram a second time."""
    return any(
        said[n - size : n] in [said[i : i + size] for i in range(n - size)]
        for n in range(max(start + 1, size), len(said) + 1)
    )


def test_long_prefix_is_whole_output():
    model = Automaton.random(6, seed=3, end_logit=-99.0)
    prefix = np.full((2, 60), PAD)
    prefix[0, :60] = np.resize([3, 4, 5, 4], 60)
    prefix[1, 0] = 4
    source = np.array([[7], [9]])
    said = array(greedy_search(model, source, target_prefix=prefix), "int32")
    np.testing.assert_array_equal(said[0], prefix[0])
    assert (said[1, :51] != PAD).any() and not said[1, 51:].any()


def test_empty_prefix_is_none():
    model = Automaton.random(6, seed=3)
    source = np.arange(1, 9)[:, None]
    expected = greedy_search(model, source, max_length=LENGTH)
    for prefix in (np.zeros((8, 3), int), np.zeros((8, 0), int), [[]] * 8):
        found = greedy_search(model, source, max_length=LENGTH, target_prefix=prefix)
        np.testing.assert_array_equal(found, expected)


def test_end_may_follow_when_every_token_was_said():
    logits = np.array([[4.0, 3.0, -50.0, 1.0, 2.0]])
    model = Automaton(logits, np.zeros((1, 5), int))
    for search in (greedy_search, sample):
        said = array(search(model, [[1]], no_repeat_ngram_size=1), "int32")[0]
        assert sorted(said[:4]) == [PAD, START, 3, 4] and said[4] == END
        assert not said[5:].any()


# A real model, and its cache


def test_cached_steps_after_a_prefix_equal_the_whole_model():
    model = make_model(seed=4)
    source, prefix = ids((5, 3), 5), np.array([[7, 9, 11], [6, 0, 0]])
    settings = {"max_length": 5, "target_prefix": prefix}
    said, scores = greedy_search(model, source, return_scores=True, **settings)
    said = array(said, "int32")
    assert (said[0, :3] == [7, 9, 11]).all() and said[1, 0] == 6
    shifted = np.pad(said[:, :-1], ((0, 0), (1, 0)), constant_values=model.start_id)
    logits = array(model({"source_ids": source, "target_ids": shifted}), "float64")
    log_probs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    own = np.take_along_axis(log_probs, said[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(scores, (own * (said != PAD)).sum(axis=1), atol=1e-4)
    free = np.arange(5) >= (prefix != PAD).sum(axis=1)[:, None]
    best = log_probs.max(axis=2)
    np.testing.assert_allclose(own[free], best[free], atol=1e-4)


def test_prefix_needs_no_vocabulary_size():
    model = Automaton.random(5, seed=1, max_length=6)
    expected = greedy_search(model, [[7], [11]], target_prefix=[[4], [3]])
    del model.target_vocabulary_size  # as of a model that has only what it must have
    actual = greedy_search(model, [[7], [11]], target_prefix=[[4], [3]])
    np.testing.assert_array_equal(actual, expected)
