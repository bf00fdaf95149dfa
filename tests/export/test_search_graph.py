"""The search in exported files keeps only the positions of its hypotheses."""

import dataclasses

import numpy as np
import tensorflow as tf
from models import make_decisive_model

from keras_vanilla.decoding import DecodingConfig, beam_search
from keras_vanilla.export import growing_caches
from keras_vanilla.export.search_graph import SearchGraph

SOURCES = np.array([[7, 8, 5, 3], [9, 4, 3, 0]])
BEAMS = 3


def test_search_of_many_segments_is_keras_s(monkeypatch):
    model = make_decisive_model(0.4)
    decoding = DecodingConfig(beam_size=BEAMS)
    longest = dataclasses.replace(decoding, max_length=14)
    expected, scores = beam_search(model, SOURCES, longest)
    assert np.count_nonzero(expected[:, 0]) > 20
    any_shape = [tf.TensorSpec([None, None], tf.int32)]  # as in a SavedModel
    for segment in (2, 5):
        monkeypatch.setattr(growing_caches, "_SEGMENT", segment)
        search = SearchGraph(model, decoding, 14)
        graph = tf.function(search, any_shape, autograph=False)
        ids, received = graph(tf.constant(SOURCES, "int32"))
        np.testing.assert_array_equal(ids, expected[:, 0])
        np.testing.assert_allclose(received, scores[:, 0], rtol=1e-4)
