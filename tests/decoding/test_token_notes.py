"""What searches note of each token, against the model's whole forward pass."""

import keras
import numpy as np
import pytest
from models import make_decisive_model
from teacher_forcing import forced_inputs, log_probabilities
from tiers import in_full

from keras_vanilla.decoding import beam_search, greedy_search
from keras_vanilla.decoding.attended_source import AttendedSource, alignment_layer
from keras_vanilla.layers import DecoderLayer, MultiHeadAttention

SOURCES = np.array([[7, 8, 5, 4, 3], [9, 4, 3, 0, 0], [6, 3, 0, 0, 0], [3, 0, 0, 0, 0]])
END = 3


@keras.saving.register_keras_serializable("test_token_notes")
class WithScoresOfItsOwn(MultiHeadAttention):
    def scores(self, query, key, index=0):
        return 1.5 * super().scores(query, key, index)


@keras.saving.register_keras_serializable("test_token_notes")
class WithSuchAttention(DecoderLayer):
    def make_attention(self, name, d_model):
        size = d_model // self.num_heads
        return WithScoresOfItsOwn(self.num_heads, size, name=name)


def expected_notes(model, source, ids, layer):
    """(L,) each, of one hypothesis, from the model's pass over the whole of it."""
    inputs = forced_inputs(model, source, ids)
    weights = model.attention_weights(inputs)[f"decoder/{layer}/cross"][0].mean(axis=0)
    words = weights[:, : list(source).index(END)]
    attended = words.argmax(axis=1) if words.shape[1] else np.zeros(len(ids))
    return log_probabilities(model, source, ids), attended


def assert_notes_are_right(model, source, ids, notes, layer):
    ids = np.asarray(ids)
    count = (ids != model.pad_id).sum()
    log_probs, attended = expected_notes(model, source, ids[:count], layer)
    np.testing.assert_allclose(notes["log_probs"][:count], log_probs, atol=2e-5)
    np.testing.assert_array_equal(notes["attended"][:count], attended)
    np.testing.assert_array_equal(notes["log_probs"][count:], 0.0)
    return count


@pytest.mark.parametrize("layer", [1, *in_full(0)])
def test_greedy_search_notes_attended_tokens(layer):
    model = make_decisive_model(0.8)
    noting = AttendedSource(model, layer)
    search = {"max_length": 12}
    ids, scores, notes = greedy_search(noting, SOURCES, return_notes=True, **search)
    expected = greedy_search(model, SOURCES, return_scores=True, **search)
    expected_ids, expected_scores = expected
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-5)
    for row in range(len(SOURCES)):
        row_notes = {name: np.asarray(x)[row] for name, x in notes.items()}
        count = assert_notes_are_right(
            model, SOURCES[row], ids[row], row_notes, noting.layer
        )
        assert count > 1
    np.testing.assert_allclose(
        np.asarray(notes["log_probs"]).sum(axis=1), scores, atol=1e-4
    )
    assert len(np.unique(notes["attended"])) > 1  # not one place for all


@pytest.mark.parametrize(
    "settings", [{}, *in_full({"decoder_layer": WithSuchAttention})]
)
def test_beam_search_notes_every_hypothesis(settings):
    model = make_decisive_model(0.8, **settings)
    noting = AttendedSource(model)
    assert noting.shares_beams == (not settings)
    search = {"beam_size": 4, "max_length": 9, "length_penalty": 0.0}
    sources = SOURCES[1:3]
    ids, scores, notes = beam_search(noting, sources, **search, return_notes=True)
    expected_ids, expected_scores = beam_search(model, sources, **search)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-4)
    for row, source in enumerate(sources):
        for k in range(4):
            of_one = {name: np.asarray(x)[row, k] for name, x in notes.items()}
            assert_notes_are_right(model, source, ids[row, k], of_one, 1)
    sums = np.asarray(notes["log_probs"]).sum(axis=2)
    np.testing.assert_allclose(sums, scores, atol=1e-4)


@pytest.mark.parametrize(
    "source_end, first", [(True, 1), *in_full((False, 0), (False, 1))]
)
def test_other_source_tokens_do_not_count(source_end, first):
    model = make_decisive_model(0.8, source_end=source_end)
    noting = AttendedSource(model, first=first)
    search = {"max_length": 12, "return_notes": True}
    ids, _, notes = greedy_search(noting, SOURCES[:2], **search)
    for source, hypothesis, attended in zip(
        SOURCES, np.asarray(ids), np.asarray(notes["attended"]), strict=False
    ):
        inputs = forced_inputs(model, source, hypothesis)
        weights = model.attention_weights(inputs)["decoder/1/cross"][0].mean(axis=0)
        words = slice(first, list(source).index(END))
        count = (hypothesis != model.pad_id).sum()
        expected = first + weights[:count, words].argmax(axis=1)
        np.testing.assert_array_equal(attended[:count], expected)


@pytest.mark.parametrize("layers, layer", [(1, 0), (2, 1), (3, 2), (6, 4), (12, 10)])
def test_layer_that_aligns_best(layers, layer):
    assert alignment_layer(layers) == layer
