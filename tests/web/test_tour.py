"""The numbers of the guided tour are those of the model."""

import json

import numpy as np
import pytest

from keras_vanilla.web.site import chosen_head, tour

TEXT = "three red house"


@pytest.fixture(scope="module")
def shown(trained_translator):
    return tour(trained_translator, TEXT)


def softmax(scores):
    exponentials = np.exp(np.array(scores) - np.max(scores))
    return exponentials / exponentials.sum()


def test_pieces_are_sentence_and_translation(shown, trained_translator):
    assert json.loads(json.dumps(shown)) == shown
    assert "".join(shown["pieces"]) == TEXT.replace(" ", "") + "⟨end⟩"
    assert [shown["ids"]] == trained_translator.encode([TEXT])
    (translation,) = trained_translator.translate([TEXT])
    assert shown["translation"] == translation
    assert "".join(shown["written"]) == translation.replace(" ", "") + "⟨end⟩"
    assert shown["beginnings"][0] == "" and shown["beginnings"][-1] == translation


def test_vector_is_embedding_and_position(shown, trained_translator):
    model = trained_translator.model
    id_ = shown["ids"][shown["position"]]
    table = np.asarray(model.encoder.embedding.embeddings)[id_]
    expected = table[:8] * np.sqrt(model.d_model)
    np.testing.assert_allclose(shown["embedding"], expected, atol=1e-4)
    both = np.add(shown["embedding"], shown["positional"])
    np.testing.assert_allclose(shown["sum"], both, atol=2e-4)


def test_head_computes_attention(shown, trained_translator):
    ids = np.array([shown["ids"]])
    arrays = {"source_ids": ids, "target_ids": ids[:, :1]}
    weights = trained_translator.model.attention_weights(arrays)["encoder/0"][0]
    head = weights[shown["head"] - 1, shown["position"]]
    np.testing.assert_allclose(shown["weights"], head, atol=1e-4)
    query, keys, values = (
        np.array(shown[name]) for name in ("query", "keys", "values")
    )
    scores = keys @ query / np.sqrt(len(query))
    np.testing.assert_allclose(shown["scores"], scores, atol=5e-3)
    np.testing.assert_allclose(shown["weights"], softmax(scores), atol=5e-3)
    np.testing.assert_allclose(shown["output"], softmax(scores) @ values, atol=5e-3)
    others = np.delete(shown["weights"], shown["position"])[:-1]
    assert max(others) > 0  # it reads another piece


def test_shown_head_mixes_values():
    to_others = np.zeros((2, 3, 3))
    to_others[0, 0, 1], to_others[1, 1, 0], to_others[1, 2, 0] = 0.7, 0.99, 0.6
    assert chosen_head(to_others) == (1, 2)
    to_others[1, 2, 0] = 0
    assert chosen_head(to_others) == (1, 1)  # there is no other


def test_steps_choose_most_probable_piece(shown):
    assert len(shown["candidates"]) == len(shown["cross"]) == len(shown["written"])
    for name, candidates, cross in zip(
        shown["written"], shown["candidates"], shown["cross"], strict=True
    ):
        shares = [share for _, share in candidates]
        assert candidates[0][0] == name and shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1.0001
        assert sum(cross) == pytest.approx(1, abs=0.01)
    assert np.shape(shown["memory"]) == (len(shown["pieces"]), 32)


def test_long_text_is_refused(trained_translator):
    with pytest.raises(ValueError, match="tokens"):
        tour(trained_translator, "one " * 200)
