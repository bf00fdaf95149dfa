import keras
import numpy as np
import pytest
from automaton import END, PAD, Automaton
from checks import array

from keras_vanilla.decoding import CompiledSearch, greedy_search, sample

SOURCE = np.array([[7, 90, 5, 0], [11, 0, 0, 0], [3, 150, 0, 0], [8, 8, 8, 8]], "int32")
LENGTH = 9


@pytest.fixture
def model():
    return Automaton.random(13, seed=0, end_logit=-2.0, max_length=LENGTH)


def drawn(model, source_ids=SOURCE, **arguments):
    return array(sample(model, source_ids, **arguments), "int32")


# How often what is drawn, against the definition in NumPy

ROWS = 20_000
LOGITS = np.array([-1.0, 0.4, -np.inf, 1.3, 0.9, -0.2, 1.1, -2.5])  # the end: never
SETTINGS = {
    "plain": {},
    "hot": {"temperature": 2.0},
    "cold": {"temperature": 0.6},
    "the 3 best": {"top_k": 3},
    "more than there are": {"top_k": 99},
    "a nucleus": {"top_p": 0.7},
    "a small nucleus": {"top_p": 0.01},
    "the whole": {"top_p": 1.0},
    "cold nucleus": {"temperature": 0.5, "top_p": 0.85},
    "all three": {"temperature": 2.0, "top_k": 4, "top_p": 0.7},
}


def truth(temperature=1.0, top_k=None, top_p=None):
    """The probabilities (V,) that the settings leave."""
    odds = np.exp(LOGITS / temperature)
    order = np.argsort(-odds)
    odds[order[top_k:] if top_k else []] = 0
    if top_p is not None:
        reached = np.cumsum(odds[order]) / odds.sum() >= top_p
        odds[order[1:][reached[:-1]]] = 0
    return odds / odds.sum()


def misfit(counts, probabilities):
    """Pearson's chi-square of counts; infinite if the impossible happened."""
    possible = probabilities > 0
    if counts[~possible].any():
        return np.inf
    expected = probabilities[possible] * counts.sum()
    assert expected.min() >= 5  # else the measure means nothing
    return (((counts[possible] - expected) ** 2) / expected).sum()


TOO_MUCH = 30.0  # for 6 degrees of freedom that is one seed in 25,000


def stationary(max_length=1):
    return Automaton(LOGITS[None], np.zeros((1, 8), int), max_length)


def counted(**settings):
    said = drawn(stationary(), np.ones((ROWS, 1), "int32"), seed=5, **settings)
    return np.bincount(said[:, 0], minlength=8)


@pytest.mark.parametrize("name", SETTINGS)
def test_tokens_are_as_frequent_as_they_are_probable(name):
    settings = SETTINGS[name]
    assert misfit(counted(**settings), truth(**settings)) < TOO_MUCH


def test_steps_and_rows_are_independent():
    said = drawn(stationary(max_length=2), np.ones((ROWS, 1), "int32"), seed=6, top_k=4)
    single = truth(top_k=4)
    pairs = np.outer(single, single)
    for first, second in (said.T, (said[:-1:2, 0], said[1::2, 0])):
        counts = np.zeros((8, 8))
        np.add.at(counts, (first, second), 1)
        assert misfit(counts, pairs) < 45  # 15 degrees of freedom: one in 13,000


@pytest.mark.parametrize(
    "settings, expected",
    [({}, [2, 5]), ({"top_k": 6}, [3, 2]), ({"top_k": 6, "top_p": 0.7}, [3, 5])],
)
def test_extreme_draws_land_on_what_is_possible(settings, expected, monkeypatch):
    largest = np.nextafter(np.float32(1), np.float32(0))
    draws = np.array([[0], [largest]], "float32")
    monkeypatch.setattr(keras.random, "uniform", lambda *_, **__: draws)
    logits = np.array([[-np.inf, -np.inf, 0.3, 1.2, -np.inf, 0.7, -np.inf]])
    model = Automaton(logits, np.zeros((1, 7), int), max_length=1)
    said = drawn(model, np.ones((2, 1), "int32"), **settings)
    np.testing.assert_array_equal(said[:, 0], expected)


@pytest.mark.parametrize(
    "settings", [{"top_k": 1}, {"temperature": 1e-6}, {"top_p": 1e-6}], ids=str
)
def test_sample_of_best_token_is_greedy_search(model, settings):
    for seed in range(3):
        np.testing.assert_array_equal(
            drawn(model, seed=seed, **settings), greedy_search(model, SOURCE)
        )


# Seeds: compiled and not


def eager_search(model):
    return lambda **arguments: drawn(model, **arguments)


def compiled_search(model):
    compiled = CompiledSearch(model)
    return lambda **arguments: compiled(sample, SOURCE, **arguments)


@pytest.fixture(params=[eager_search, compiled_search])
def search(request, model):
    return request.param(model)


def test_seed_decides_samples(search):
    first = search(seed=3)
    np.testing.assert_array_equal(search(seed=3), first)
    others = [search(seed=2), search(seed=None), search(seed=None), search(), search()]
    assert len({x.tobytes() for x in (first, *others)}) == 6
    for _ in range(2):  # the state of a generator goes on
        generator = keras.random.SeedGenerator(3)
        np.testing.assert_array_equal(search(seed=generator), first)
        second = search(seed=generator)
        assert (second != first).any()
    said = []
    for _ in range(2):
        keras.utils.set_random_seed(4)
        said.append((search(), search()))
    np.testing.assert_array_equal(*said)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 1.5, "top_k": 5, "top_p": 0.8}]
)
def test_compiled_sample_is_the_same_and_traced_once_for_all_seeds(model, settings):
    traced = Automaton.random(13, seed=0, end_logit=-2.0, max_length=LENGTH)
    compiled = CompiledSearch(traced)
    counts = []
    for seed in (1, 2, 2**31 - 1, None, keras.random.SeedGenerator(1)):
        said = compiled(sample, SOURCE, seed=seed, **settings)
        counts.append(traced.encoded)
        if isinstance(seed, int):
            np.testing.assert_array_equal(said, drawn(model, seed=seed, **settings))
    if keras.backend.backend() != "torch":  # which traces nothing
        assert len(set(counts)) == 1


def test_padding_following_rows_and_longer_limit_change_nothing(model):
    expected = drawn(model, seed=1)
    wide = np.pad(SOURCE, ((0, 0), (0, 6)))
    np.testing.assert_array_equal(drawn(model, wide, seed=1), expected)
    np.testing.assert_array_equal(drawn(model, SOURCE[:2], seed=1), expected[:2])
    short = drawn(model, seed=1, max_length=4)
    np.testing.assert_array_equal(short, expected[:, :4])
    assert (expected[:, 4:] != PAD).any()
    said = drawn(
        Automaton.random(7, seed=0, max_length=LENGTH), np.arange(1, 99)[:, None]
    )
    after_the_end = np.cumsum(said == END, axis=1) - (said == END) > 0
    assert not said[after_the_end].any() and after_the_end.any()
