"""The numbers of the guided tour are those of the model."""

import json
import re

import numpy as np
import pytest

from keras_vanilla.translation import Translator
from keras_vanilla.web.site import chosen_head, other_word, tour

TEXT, OTHER = "three red house", "three blue house"


@pytest.fixture(scope="module")
def shown(trained_translator):
    return tour(trained_translator, TEXT, OTHER)


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


def test_layer_output_is_what_next_layer_gets(shown, trained_translator):
    model, ids = trained_translator.model, np.array([shown["ids"]])
    encoder, position = model.encoder, shown["position"]
    outputs = np.asarray(encoder.layers[0](encoder.positions(encoder.embedding(ids))))
    expected = outputs[0, position, :8]
    np.testing.assert_allclose(shown["layer_output"], expected, atol=1e-4)
    x, heads = np.asarray(shown["sum"]), np.asarray(shown["attended"])
    assert np.abs(heads - x).max() > 0.01 < np.abs(heads - expected).max()


def test_nearest_vectors_have_largest_cosines(shown, trained_translator):
    table = np.asarray(trained_translator.model.encoder.embedding.embeddings)
    table = table / (np.linalg.norm(table, axis=1, keepdims=True) + 1e-12)
    id_ = shown["ids"][shown["position"]]
    cosines = np.delete(table @ table[id_], [id_, *range(4)])
    found = [cosine for _, cosine in shown["nearest"]]
    np.testing.assert_allclose(found, np.sort(cosines)[::-1][:5], atol=1e-3)


def test_shown_head_mixes_values_of_words():
    weights = np.array([[0.1, 0.9, 0.0], [0.3, 0.0, 0.7], [0.2, 0.2, 0.6]])
    is_word = np.array([True, True, True])
    assert chosen_head(weights, 0, is_word) == 1
    assert chosen_head(weights, 0, np.array([True, True, False])) == 2
    assert chosen_head(weights, 0, np.array([True, False, False])) == 0  # any other


def test_words_of_tour_are_whole(shown):
    groups = shown["words"]
    assert [i for group in groups for i in group] == list(range(len(shown["pieces"])))
    words = ["".join(shown["pieces"][i] for i in group) for group in groups]
    assert words == [*TEXT.split(), "⟨end⟩"]


def test_rows_of_mask_read_nothing_later(shown):
    weights = np.array(shown["self"])
    assert len(weights) == min(5, len(shown["written"])) > 2
    assert not np.triu(weights, 1).any()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=0.01)


def test_texts_differ_in_one_word():
    assert other_word("It was too tired.", "It was too wide.") == ("tired", "wide")
    assert other_word("It was too tired.", "It was very wide.") is None
    assert other_word("It was.", "It was wide.") is None
    assert other_word(TEXT, TEXT) is None


def test_contrast_is_decided_by_word(shown, trained_translator):
    contrast, step = shown["contrast"], shown["step"]
    assert contrast["words"] == ["red", "blue"]
    assert contrast["write"] == ["rood", "blauw"]
    assert shown["written"][step] == "rood"
    (text, one, other), (second, *_), (without, *_) = contrast["probabilities"]
    assert (text, second, without) == (TEXT, OTHER, "three house")
    assert one == pytest.approx(dict(shown["candidates"][step])["rood"], abs=1e-4)
    assert one > 0.9 > 0.1 > other
    assert tour(trained_translator, TEXT)["contrast"] is None


def test_contrast_leaves_out_word_that_differs(trained_translator):
    text, other = "red tree red house", "red tree blue house"
    contrast = tour(trained_translator, text, other)["contrast"]
    sentences = [sentence for sentence, *_ in contrast["probabilities"]]
    assert sentences == [text, other, "red tree house"]


def test_tour_of_pretrained_translator_follows_it():
    translator = Translator.from_preset("en-fr")
    text, other = translator.about.examples[:2]
    shown = tour(translator, text, other)
    assert shown["pieces"][shown["position"]] == "it"
    others = np.delete(shown["weights"], shown["position"])
    read = np.delete(shown["pieces"], shown["position"])[others.argmax()]
    assert read in re.findall(r"[\w']+", text)  # a whole word
    assert shown["contrast"]["words"] == ["tired", "wide"]
    assert shown["contrast"]["write"] == ["il", "elle"]
    (_, il, _), (_, _, elle), (_, _, without) = shown["contrast"]["probabilities"]
    assert il > 0.5 and elle > 0.5 and without < elle


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
