from types import SimpleNamespace

import keras
import numpy as np
import pytest
from automaton import END, PAD, Automaton
from checks import array
from keras import ops
from models import ids
from word_reversal import padded

from keras_vanilla.decoding import (
    CompiledSearch,
    greedy_search,
)
from keras_vanilla.decoding.hypothesis_end import output_length

SOURCE = ids((5, 3, 7), 7)


def test_search_stops_when_every_row_has_ended():
    """In states 0 to 3 the next tokens are 3, 4, 5 and the end."""
    logits = np.eye(6)[[3, 4, 5, END]]
    model = Automaton(logits, np.minimum(np.arange(1, 5), 3)[:, None].repeat(6, 1))
    found = greedy_search(model, [[4], [6], [7]], max_length=50)
    assert keras.backend.standardize_dtype(found.dtype) == "int32"
    expected = [[3, 4, 5, END], [5, END, PAD, PAD], [END, PAD, PAD, PAD]]
    np.testing.assert_array_equal(found[:, :4], expected)
    assert not array(found)[:, 4:].any()
    assert model.stepped == 4 or keras.backend.backend() == "jax"


def test_lowest_of_equal_logits_is_chosen():
    model = Automaton([[0, 0, 0, 1, 0, 2, 0, 2]], np.zeros((1, 8), int))
    assert set(np.ravel(greedy_search(model, SOURCE, max_length=2))) == {5}


@pytest.mark.parametrize("pads", [0, 11])
@pytest.mark.parametrize("most, lengths", [(97, [55, 53, 57]), (54, [54, 53, 54])])
def test_default_length_is_50_more_than_source_of_row(most, lengths, pads):
    """And at most the model's, whatever the batch is padded to."""
    model = Automaton([[0, 0, 0, 1]], np.zeros((1, 4), int), max_length=most)
    found = array(greedy_search(model, np.pad(SOURCE, ((0, 0), (0, pads)))))
    assert found.shape == (3, min(57 + pads, most))
    expected = np.arange(found.shape[1]) < np.array(lengths)[:, None]
    np.testing.assert_array_equal(found, np.where(expected, 3, PAD))


def test_output_length_of_tensor_equals_that_of_int():
    model = SimpleNamespace(max_length=97)
    for source_length in (1, 46, 47, 48, 90):
        expected = min(source_length + 50, 97)
        assert output_length(model, source_length) == expected
        tensor = ops.convert_to_tensor(source_length, dtype="int32")
        assert int(output_length(model, tensor)) == expected


# With a real model, whose rows end at different places; LENGTH cuts off the longest

LENGTH = 7


@pytest.fixture(scope="module")
def model(trained_translator):
    return trained_translator.model


@pytest.fixture(scope="module")
def source(trained_translator):
    sentences = ["red two", "nine", "tree one zero river eight tree small ten"]
    return padded(trained_translator.tokenizer.encode(sentences))


def naive_search(model, source_ids, max_length):
    """The whole model again for each token; with the margin of each choice."""
    rows, margins = [], []
    for source in source_ids:
        source = source[source != PAD]
        said = [model.start_id]
        while len(said) <= max_length and said[-1] != model.end_id:
            feed = {"source_ids": source[None], "target_ids": np.array([said])}
            logits = array(model(feed), "float64")[0, -1]
            best = np.sort(logits)[-2:]
            margins.append(best[1] - best[0])
            said.append(int(logits.argmax()))
        rows.append(said[1:] + [PAD] * (max_length + 1 - len(said)))
    return np.array(rows), min(margins)


def test_equals_uncached_loop_of_each_row_alone(model, source):
    expected, margin = naive_search(model, source, LENGTH)
    lengths = (expected != PAD).sum(axis=1)
    assert len(set(lengths)) == 3 and margin > 1e-4  # the test is worth something
    assert expected[2, -1] != model.end_id
    np.testing.assert_array_equal(
        greedy_search(model, source, max_length=LENGTH), expected
    )


def test_compiled_search_says_the_same_and_follows_the_weights(
    trained_translator, source
):
    model = trained_translator.copy().model
    compiled = CompiledSearch(model)
    said = []
    for length in (LENGTH, 3, 3):
        said.append(compiled(greedy_search, source, max_length=length))
        expected = greedy_search(model, source, max_length=length)
        np.testing.assert_array_equal(said[-1], expected)
        table = model.target_embedding.embeddings
        table.assign(keras.ops.roll(table.value, len(said) // 2, axis=0))
    assert (said[1] != said[2]).any()


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's own setting"
)
def test_compiled_search_runs_eagerly_where_everything_does():
    import tensorflow as tf

    automaton = Automaton.random(13, seed=0, max_length=LENGTH)
    source = np.full((2, 3), 7)
    expected = greedy_search(automaton, source)
    tf.config.run_functions_eagerly(True)
    try:
        received = CompiledSearch(automaton)(greedy_search, source)
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_array_equal(received, expected)
