"""A past that grows, and rows that leave the batch, lead to the same hypotheses."""

import keras
import numpy as np
import pytest
from keras import ops
from models import make_decisive_model
from tiers import in_full

from keras_vanilla.decoding import CompiledSearch, beam_search, greedy_search
from keras_vanilla.decoding.searched_model import ModelAround

SOURCES = np.array([[7, 8, 5, 3], [9, 4, 3, 0], [6, 3, 0, 0]])
SEARCHES = {"greedy": (greedy_search, {}), "beams": (beam_search, {"beam_size": 3})}


only_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow's graphs grow"
)


@pytest.fixture(params=SEARCHES)
def search(request):
    return SEARCHES[request.param]


def lengths(past):
    return {value.shape[2] for value in keras.tree.flatten(past)}


@pytest.mark.parametrize(
    "settings",
    [
        {"normalize_first": True, "forbidden_ids": [0, 5], "zero_pad": True},
        *in_full({}),
    ],
    ids=str,
)
def test_compiled_search_equals_eager_search(search, settings):
    model = make_decisive_model(0.4, **settings)
    function, arguments = search
    arguments = {**arguments, "return_notes": True, "max_length": 12}
    expected = function(model, SOURCES, **arguments)
    received = CompiledSearch(model)(function, SOURCES, **arguments)
    np.testing.assert_array_equal(received[0], expected[0])
    np.testing.assert_allclose(received[1], expected[1], rtol=1e-5)
    for name, values in expected[2].items():
        np.testing.assert_allclose(received[2][name], values, rtol=1e-4, atol=1e-6)


@only_tensorflow
def test_compiled_search_copies_nothing_that_is_empty(search, monkeypatch):
    """The cache begins without a position, in a search of at most 30 tokens."""
    model = make_decisive_model(0.4)
    started = []
    start_cache = model.decoder.start_cache

    def noted(*arguments):
        cache = start_cache(*arguments)
        started.append(lengths(cache.past))
        return cache

    monkeypatch.setattr(model.decoder, "start_cache", noted)
    function, arguments = search
    CompiledSearch(model)(function, SOURCES, **arguments)
    assert started == [{None}]


class EndsByRow(ModelAround):
    """A model whose row i ends after `ENDS[i]` tokens.

    Args:
        model: Transformer.
        grows: bool. Whether its past grows, so that rows may leave the batch.
    Attributes:
        sizes: list of int or None. The number of rows of each step.
    """

    def __init__(self, model, grows):
        super().__init__(model)
        self._grows, self.sizes = grows, []

    def start_cache(self, memory, memory_mask, max_length, beam_size=None):
        length = None if self._grows else max_length
        cache = self._model.start_cache(memory, memory_mask, length, beam_size)
        return cache._replace(extra={"ends": ops.convert_to_tensor(ENDS, "int32")})

    def decode_step(self, ids, index, cache):
        self.sizes.append(ids.shape[0])
        logits, cache = self._model.decode_step(ids, index, cache)
        ends = ops.equal(cache.extra["ends"], index + 1)
        for _ in logits.shape[1:]:
            ends = ops.expand_dims(ends, -1)
        is_end = ops.equal(ops.arange(logits.shape[-1]), self.end_id)
        only_end = ops.where(is_end, 0.0, float("-inf"))
        without_end = ops.where(is_end, float("-inf"), logits)
        return ops.where(ends, only_end, without_end), cache


ENDS = [2, 9, 3, 12, 2, 5, 7]
CONSTRAINTS = {
    "none": {},
    "prefix": {"target_prefix": np.array([[4], [5], [6], [7], [8], [9], [4]])},
    "no loops": {"no_loops": True},
}


@only_tensorflow
@pytest.mark.parametrize("constraint", ["prefix", *in_full("none", "no loops")])
def test_rows_leave_the_batch_when_half_of_them_have_ended(search, constraint):
    """What is found is what is found where they stay."""
    model = make_decisive_model(0.4)
    sources = np.random.default_rng(0).integers(4, 10, (7, 5))
    function, arguments = search
    arguments = {**arguments, "return_notes": True, "max_length": 12}
    arguments |= CONSTRAINTS[constraint]
    staying, leaving = EndsByRow(model, grows=False), EndsByRow(model, grows=True)
    expected = keras.tree.flatten(function(staying, sources, **arguments))
    assert staying.sizes == 12 * [7]
    received = keras.tree.flatten(function(leaving, sources, **arguments))
    assert leaving.sizes == 5 * [7] + 4 * [3] + 3 * [1]
    in_graph = CompiledSearch(EndsByRow(model, grows=True))
    in_graph = keras.tree.flatten(in_graph(function, sources, **arguments))
    lengths = (np.asarray(expected[0]) != model.pad_id).sum(axis=-1).reshape(7, -1)
    assert lengths.max(axis=1).tolist() == ENDS
    for a, b, c in zip(expected, received, in_graph, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(c, a, rtol=1e-4, atol=1e-5)
