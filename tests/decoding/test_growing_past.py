"""A past that grows at each step is another way to the same hypotheses."""

import keras
import numpy as np
import pytest
from models import make_decisive_model

from keras_vanilla.decoding import CompiledSearch, beam_search, greedy_search
from keras_vanilla.layers import DecoderLayer, MultiHeadAttention

SOURCES = np.array([[7, 8, 5, 3], [9, 4, 3, 0], [6, 3, 0, 0]])
SEARCHES = {"greedy": (greedy_search, {}), "beams": (beam_search, {"beam_size": 3})}


@pytest.fixture(params=SEARCHES)
def search(request):
    return SEARCHES[request.param]


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="its shapes are fixed")
@pytest.mark.parametrize(
    "settings",
    [{}, {"normalize_first": True}, {"forbidden_ids": [0, 5]}, {"zero_pad": True}],
    ids=str,
)
def test_the_same_ids_and_scores(search, settings):
    model = make_decisive_model(0.4, **settings)
    function, arguments = search
    expected = function(model, SOURCES, return_notes=True, **arguments)
    with model.growing_past():
        assert model.past_grows
        received = function(model, SOURCES, return_notes=True, **arguments)
    assert not model.past_grows
    np.testing.assert_array_equal(received[0], expected[0])
    np.testing.assert_allclose(received[1], expected[1], rtol=1e-5)
    for name, values in expected[2].items():
        np.testing.assert_allclose(received[2][name], values, rtol=1e-4, atol=1e-6)


def test_a_compiled_search_finds_what_the_same_search_finds(search):
    model = make_decisive_model(0.4)
    function, arguments = search
    expected = function(model, SOURCES, return_notes=True, **arguments)
    compiled = CompiledSearch(model)
    received = compiled(function, SOURCES, return_notes=True, **arguments)
    np.testing.assert_array_equal(received[0], expected[0])
    assert not model.past_grows


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow's graphs grow"
)
def test_a_compiled_search_copies_nothing_that_is_empty(search, monkeypatch):
    """The cache begins without a position, in a search of at most 30 tokens."""
    model = make_decisive_model(0.4)
    lengths = []
    start_cache = model.decoder.start_cache

    def noted(*arguments):
        cache = start_cache(*arguments)
        lengths.append(cache["decoder/0/self_key"].shape[2])
        return cache

    monkeypatch.setattr(model.decoder, "start_cache", noted)
    function, arguments = search
    CompiledSearch(model)(function, SOURCES, **arguments)
    assert lengths == [None]


def test_a_layer_of_somebodys_own_keeps_its_full_cache():
    """It may tell positions by their places in the cache."""

    class Own(MultiHeadAttention):
        def scores(self, query, key, index=0):
            return super().scores(query, key, index)

    model = make_decisive_model(0.4)
    layer = model.decoder_layers[0]
    layer.self_attention.__class__ = Own
    with model.growing_past():
        assert not model.past_grows
        assert not any(each.past_grows for each in model.decoder_layers)


def test_an_error_inside_the_block_ends_it():
    model = make_decisive_model(0.4)
    with pytest.raises(ZeroDivisionError), model.growing_past():
        1 / 0  # noqa: B018
    assert not model.past_grows
    assert "past_grows" in vars(DecoderLayer)
