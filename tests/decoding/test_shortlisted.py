"""Searches among few pieces, against searches of which all others are forbidden."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from models import make_decisive_model
from tiers import in_full

from keras_vanilla.decoding import beam_search, greedy_search
from keras_vanilla.decoding.attended_source import AttendedSource
from keras_vanilla.decoding.searched_model import ModelAround
from keras_vanilla.decoding.shortlisted import Shortlisted, id_dtype
from keras_vanilla.layers import DecoderLayer

SOURCES = np.array([[7, 8, 5, 4, 3], [9, 4, 3, 0, 0], [6, 3, 0, 0, 0]])
PAD, START, END, VOCABULARY = 0, 2, 3, 23


@keras.saving.register_keras_serializable("test_shortlisted")
class WithAStepOfItsOwn(DecoderLayer):
    """Its beams cannot share one past."""

    def step(self, *args, **kwargs):
        return super().step(*args, **kwargs)


def make_shortlist(size, suggestions=2):
    random = np.random.default_rng(3)
    likely = random.integers(4, VOCABULARY, (VOCABULARY, suggestions))
    likely[PAD] = PAD
    return SimpleNamespace(
        likely=likely.astype("int32"),
        frequent=random.permutation(VOCABULARY).astype("int32"),
        size=size,
    )


def most_promising(shortlist, source, forbidden_ids=(), start_id=START, **settings):
    """The ids that may be said, by the definition."""
    promise = {}
    for rank, id_ in enumerate(shortlist.frequent.tolist()):
        promise[id_] = 1 / (1 + rank / 64)
    for piece in source:
        for rank, id_ in enumerate(shortlist.likely[piece].tolist()):
            promise[id_] += 1 / (1 + rank)
    special = list(dict.fromkeys([PAD, start_id, END]))
    others = set(promise) - {*special, *forbidden_ids}
    others = sorted(others, key=lambda i: -promise[i])
    return [*special, *others[: shortlist.size - len(special)]]


@pytest.mark.parametrize("size", [23, 2**15, 2**15 + 1, 10**6])
def test_every_id_of_a_vocabulary_has_room(size):
    kept = np.array([size - 1]).astype(id_dtype(size))
    assert kept[0] == size - 1
    assert kept.itemsize == (2 if size <= 32_768 else 4)


class OthersForbidden(ModelAround):
    """A model that says only some ids for each of its sources."""

    def __init__(self, model, ids):
        super().__init__(model)
        self._refused = np.full((len(ids), 1, VOCABULARY), -np.inf, "float32")
        for row, allowed in enumerate(ids):
            self._refused[row, :, allowed] = 0

    def decode_step(self, *args):
        logits, cache = self._model.decode_step(*args)
        rows = keras.ops.reshape(logits, (len(SOURCES), -1, VOCABULARY))
        return keras.ops.reshape(rows + self._refused, logits.shape), cache


MODELS = [
    {},
    {"normalize_first": True, "output_bias": True},
    {"tie_output": False},
    {"forbidden_ids": [PAD, 7]},
    {"start_id": PAD, "forbidden_ids": [PAD], "zero_pad": True},
    {"decoder_layer": WithAStepOfItsOwn},
]


@pytest.mark.parametrize("settings", [*MODELS[:3], *in_full(*MODELS[3:])], ids=str)
@pytest.mark.parametrize("beam_size", [3, *in_full(1)])
def test_it_finds_what_a_search_finds_that_may_say_nothing_else(settings, beam_size):
    model, shortlist = make_decisive_model(0.4, **settings), make_shortlist(11)
    shortlisted = Shortlisted(model, shortlist)
    search = {"max_length": 6, "return_scores": True}
    if beam_size > 1:
        search = {"max_length": 6, "beam_size": beam_size}
    function = greedy_search if beam_size == 1 else beam_search
    places, scores = function(shortlisted, SOURCES, **search)
    ids = np.asarray(shortlisted.ids_of(places))
    allowed = [most_promising(shortlist, source, **settings) for source in SOURCES]
    expected = function(OthersForbidden(model, allowed), SOURCES, **search)
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=2e-4, atol=2e-5)
    assert (ids != PAD).sum() > 2 * len(SOURCES)


@pytest.mark.full
def test_with_all_pieces_it_is_the_whole_search():
    model = make_decisive_model(0.8)
    shortlisted = Shortlisted(model, make_shortlist(VOCABULARY))
    search = {"max_length": 12, "return_notes": True}
    noted = greedy_search(AttendedSource(shortlisted), SOURCES, **search)
    expected = greedy_search(AttendedSource(model), SOURCES, **search)
    ids = shortlisted.ids_of(noted[0])
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_allclose(noted[1], expected[1], atol=1e-4)
    np.testing.assert_array_equal(noted[2]["attended"], expected[2]["attended"])


@pytest.mark.parametrize("size", [2, VOCABULARY + 1])
def test_other_sizes_are_refused(size):
    with pytest.raises(ValueError, match=f"from 3 to 23, .* Received: {size}"):
        Shortlisted(make_decisive_model(0.4), make_shortlist(size))


def test_another_model_s_shortlist_is_refused():
    shortlist = make_shortlist(9)
    shortlist.likely = shortlist.likely[:-1]
    with pytest.raises(ValueError, match="of 23 and 23 pieces. Received: 22 and 23"):
        Shortlisted(make_decisive_model(0.4), shortlist)
