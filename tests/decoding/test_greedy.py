from types import SimpleNamespace

import keras
import numpy as np
import pytest
from automaton import Automaton
from checks import array
from keras import ops
from models import ids
from word_reversal import padded

from keras_vanilla.decoding import (
    CompiledSearch,
    SearchedModel,
    greedy_search,
)
from keras_vanilla.decoding.hypothesis_end import output_length

PAD, START, END = 0, 2, 3
SOURCE = ids((5, 3, 7), 7)


class ScriptedModel(SearchedModel):
    """Says what a script says, row by row, and keeps what it was asked."""

    pad_id, start_id, end_id, max_length = PAD, START, END, 97

    def __init__(self, script, vocabulary_size=11):
        self.script = ops.convert_to_tensor(script, dtype="int32")
        self.vocabulary_size = vocabulary_size
        self.asked = []

    def encode(self, source_ids):
        source_ids = ops.convert_to_tensor(source_ids)
        memory = ops.expand_dims(ops.cast(source_ids, "float32"), -1)
        return memory, ops.not_equal(source_ids, PAD)

    def start_cache(self, memory, memory_mask, max_length):
        return {"steps": ops.zeros((ops.shape(memory)[0],), dtype="int32")}

    def decode_step(self, ids, index, cache):
        self.asked.append((int(index), np.asarray(ids).tolist()))
        said = ops.take(self.script, index, axis=1)
        return ops.one_hot(said, self.vocabulary_size), {"steps": cache["steps"] + 1}


@pytest.mark.parametrize(
    "script, expected, steps",
    [
        (
            [[5, 6, END, 7, 7, 7], [END, 8, 8, 8, 8, 8], [4, 5, 6, 7, END, 9]],
            [[5, 6, END] + 3 * [PAD], [END] + 5 * [PAD], [4, 5, 6, 7, END, PAD]],
            5,
        ),
        (  # rows without an end are `max_length` long
            [[5, 6, 7, 8], [5, END, 7, 8], [9, 9, 9, END]],
            [[5, 6, 7], [5, END, PAD], [9, 9, 9]],
            3,
        ),
        (  # the search stops when every row has ended
            [[5, END] + 48 * [7], [END] + 49 * [7], [6, END] + 48 * [7]],
            [[5, END] + 48 * [PAD], [END] + 49 * [PAD], [6, END] + 48 * [PAD]],
            2,
        ),
    ],
    ids=["ends", "no end", "early end"],
)
def test_rows_end_with_the_end_and_then_pads(script, expected, steps):
    model = ScriptedModel(script)
    ids = greedy_search(model, SOURCE, max_length=len(expected[0]))
    np.testing.assert_array_equal(ids, expected)
    assert keras.backend.standardize_dtype(ids.dtype) == "int32"
    assert len(model.asked) == steps


def test_each_step_is_given_the_tokens_of_the_step_before():
    model = ScriptedModel([[5, 6, END], [END, 8, 8], [4, 5, 6]])
    greedy_search(model, SOURCE, max_length=3)
    assert model.asked == [
        (0, [START, START, START]),
        (1, [5, END, 4]),
        (2, [6, PAD, 5]),
    ]


def test_lowest_of_equal_logits_wins():
    model = ScriptedModel([[0] * 2] * 3)
    tie = np.eye(11)[[4]] + np.eye(11)[[6]] + np.eye(11)[[9]]
    model.decode_step = lambda ids, index, cache: (
        ops.convert_to_tensor(np.repeat(tie, 3, axis=0), dtype="float32"),
        cache,
    )
    assert set(np.ravel(greedy_search(model, SOURCE, max_length=2))) == {4}


@pytest.mark.parametrize("pads", [0, 11])
@pytest.mark.parametrize("most, lengths", [(97, [55, 53, 57]), (54, [54, 53, 54])])
def test_default_length_is_50_more_than_the_rows_own_source(most, lengths, pads):
    """And at most the model's, whatever the batch is padded to."""
    model = ScriptedModel([[5] * 99] * 3)
    model.max_length = most
    ids = array(greedy_search(model, np.pad(SOURCE, ((0, 0), (0, pads)))))
    assert ids.shape == (3, min(57 + pads, most))
    expected = np.arange(ids.shape[1]) < np.array(lengths)[:, None]
    np.testing.assert_array_equal(ids, np.where(expected, 5, PAD))


def test_output_length_of_a_symbol_equals_that_of_an_int():
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
        said = [START]
        while len(said) <= max_length and said[-1] != END:
            feed = {"source_ids": source[None], "target_ids": np.array([said])}
            logits = array(model(feed), "float64")[0, -1]
            best = np.sort(logits)[-2:]
            margins.append(best[1] - best[0])
            said.append(int(logits.argmax()))
        rows.append(said[1:] + [PAD] * (max_length + 1 - len(said)))
    return np.array(rows), min(margins)


def test_equals_the_uncached_loop_row_by_row(model, source):
    expected, margin = naive_search(model, source, LENGTH)
    lengths = (expected != PAD).sum(axis=1)
    assert len(set(lengths)) == 3 and margin > 1e-4  # the test is worth something
    assert expected[2, -1] != END
    np.testing.assert_array_equal(
        greedy_search(model, source, max_length=LENGTH), expected
    )


@pytest.mark.full
@pytest.mark.parametrize("jit_compile", [False, True])
def test_graph_of_unknown_shapes_says_the_same(model, source, jit_compile):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow's graphs are tested")
    search = tf.function(
        lambda source_ids: greedy_search(model, source_ids),
        input_signature=[tf.TensorSpec([None, None], "int32")],
        jit_compile=jit_compile,
    )
    for ids_ in (source, source[:2, :4]):
        np.testing.assert_array_equal(search(ids_), greedy_search(model, ids_))


def test_row_says_the_same_alone_and_among_others(model, source):
    together = array(greedy_search(model, source, max_length=LENGTH))
    for row, own in zip(together, source, strict=True):
        alone = greedy_search(model, own[own != PAD][None], max_length=LENGTH)
        np.testing.assert_array_equal(alone[0], row)


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
    keras.backend.backend() != "tensorflow", reason="others have a graph per shape"
)
def test_compiled_search_is_traced_once_for_all_shapes():
    automaton = Automaton.random(13, seed=0, max_length=LENGTH)
    compiled = CompiledSearch(automaton)
    for prefix, traced in ((None, 1), (5, 2)):  # another input is another graph
        for rows, width in ((1, 8), (1, 16), (4, 8), (3, 5)):
            source = np.full((rows, width), 7)
            arguments = {} if prefix is None else {"target_prefix": [[prefix]] * rows}
            received = compiled(greedy_search, source, **arguments)
            expected = greedy_search(automaton, source, **arguments)
            np.testing.assert_array_equal(received, expected)
            automaton.encoded -= 1  # of the search that is not compiled
        assert automaton.encoded == traced


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
