"""One past for all beams of a row, and one for each, are two ways to the same."""

import numpy as np
import pytest
from keras import ops
from models import make_decisive_model
from tiers import in_full

from keras_vanilla.decoding import SearchedModel, beam_search
from keras_vanilla.decoding.beam_past import CopiedPast, SharedPast, beam_past
from keras_vanilla.layers import MultiHeadAttention

SOURCES = np.array([[7, 8, 5, 3], [9, 4, 3, 0], [6, 3, 0, 0]])


class OneForEach(SearchedModel):
    """A model of which beam search knows only what it needs of every model."""

    def __init__(self, model):
        for name in ("encode", "decode_step", "pad_id", "start_id", "end_id"):
            setattr(self, name, getattr(model, name))
        self.max_length, self._model = model.max_length, model

    def start_cache(self, memory, memory_mask, max_length):
        assert len(memory) == 4 * len(SOURCES)
        return self._model.start_cache(memory, memory_mask, max_length)


@pytest.mark.parametrize(
    "settings",
    [
        {"normalize_first": True, "forbidden_ids": [0, 5], "zero_pad": True},
        *in_full({}),
    ],
    ids=str,
)
def test_both_find_the_same(settings):
    model = make_decisive_model(0.4, **settings)
    assert isinstance(beam_past(model, 4), SharedPast)
    assert isinstance(beam_past(OneForEach(model), 4), CopiedPast)
    search = {"beam_size": 4, "max_length": 12}
    ids, scores = beam_search(model, SOURCES, **search)
    expected_ids, expected_scores = beam_search(OneForEach(model), SOURCES, **search)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5)
    lengths = (np.asarray(ids) != model.pad_id).sum(axis=2)
    for hypotheses in np.asarray(ids):
        assert len({tuple(row) for row in hypotheses}) == 4
    assert lengths.min() > 1


def test_attention_of_another_kind_has_a_past_for_each_beam():
    class ByPlace(MultiHeadAttention):
        """Its scores depend on how far a place is from the query's."""

        def scores(self, query, key, index=0):
            places = ops.arange(ops.shape(key)[2], dtype="float32")
            return super().scores(query, key, index) - ops.abs(
                places - ops.cast(index, "float32")
            )

    model = make_decisive_model(0.4)
    model.decoder_layers[0].self_attention.__class__ = ByPlace
    assert isinstance(beam_past(model, 4), CopiedPast)
    ids, _ = beam_search(model, SOURCES, beam_size=4, max_length=6)
    assert ids.shape == (3, 4, 6)
