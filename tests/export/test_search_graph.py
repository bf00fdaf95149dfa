"""The search in exported files keeps only the positions of its hypotheses."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from models import make_decisive_model

from keras_vanilla.decoding import DecodingConfig, beam_search
from keras_vanilla.decoding.beam_past import SharedPast
from keras_vanilla.export import search_graph
from keras_vanilla.export.search_graph import SearchGraph

SOURCES = np.array([[7, 8, 5, 3], [9, 4, 3, 0]])
BEAMS = 3


def after_steps(past, sources, count):
    """The cache after some steps whose beams branch and are given up."""
    random = np.random.default_rng(4)
    cache = past.start(*past._model.encode(sources), 11)
    shape = len(sources), BEAMS
    for index in range(count):
        _, after = past.step(random.integers(4, 9, size=shape), index, cache)
        parents = random.integers(0, BEAMS, size=shape)
        cache = past.of_parents(after, cache, tf.constant(parents, "int32"))
    return cache


def length(cache):
    return {value.shape[2] for value in keras.tree.flatten(cache.past)}


@pytest.mark.parametrize("count, rows", [(1, 1), (3, 2), (5, 1), (8, 1), (8, 2)])
def test_positions_of_no_hypothesis_are_removed_and_change_no_step(count, rows):
    past = SharedPast(make_decisive_model(0.4), BEAMS)
    cache = after_steps(past, SOURCES[:rows], count)
    used = np.any(cache.ancestors, axis=(0, 1)).sum()
    fewer = search_graph._without_dead_ends(cache, tf.constant(count))
    assert length(fewer) == {-(-used // BEAMS) * BEAMS}
    longer = search_graph._with_another_segment(fewer)
    parents = tf.constant([[2, 0, 0], [1, 1, 2]][:rows], "int32")
    ids = np.array([[4, 5, 6], [7, 8, 4]][:rows])
    for index in range(count, count + 3):
        expected, cache = past.step(ids, index, cache)
        received, longer = past.step(ids, index, longer)
        np.testing.assert_allclose(received, expected, rtol=1e-4, atol=1e-5)
        cache, longer = (past.of_parents(x, x, parents) for x in (cache, longer))


def test_without_branches_every_position_is_kept():
    past = SharedPast(make_decisive_model(0.4), BEAMS)
    cache = past.start(*past._model.encode(SOURCES), 2)
    for index in range(2):
        _, cache = past.step(np.full((2, BEAMS), 4), index, cache)
    fewer = search_graph._without_dead_ends(cache, tf.constant(2))
    assert length(fewer) == length(cache) == {2 * BEAMS}
    assert int(fewer.removed) == 0


def test_search_of_many_segments_is_keras_s(monkeypatch):
    model = make_decisive_model(0.4)
    decoding = DecodingConfig(beam_size=BEAMS)
    longest = dataclasses.replace(decoding, max_length=14)
    expected, scores = beam_search(model, SOURCES, longest)
    assert np.count_nonzero(expected[:, 0]) > 20
    any_shape = [tf.TensorSpec([None, None], tf.int32)]  # as in a SavedModel
    for segment in (2, 5):
        monkeypatch.setattr(search_graph, "_SEGMENT", segment)
        search = SearchGraph(model, decoding, 14)
        graph = tf.function(search, any_shape, autograph=False)
        ids, received = graph(tf.constant(SOURCES, "int32"))
        np.testing.assert_array_equal(ids, expected[:, 0])
        np.testing.assert_allclose(received, scores[:, 0], rtol=1e-4)
