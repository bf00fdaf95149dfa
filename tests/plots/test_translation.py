import numpy as np
import pytest
from word_reversal import DUTCH, ENGLISH, dutch

from keras_vanilla.plots.translation import (
    KINDS,
    translation_attention,
    translation_positions,
)
from keras_vanilla.translation import Translator
from keras_vanilla.translation.batch_translation import Hypothesis

TEXT = "green house two river"
PARTS = {"cross": "cross", "decoder": "self"}  # of a decoder layer


def drawn(figure):
    """The table, the names of its rows and those of its columns."""
    axes = figure.axes[0]
    names = [
        [label.get_text() for label in labels]
        for labels in (axes.get_yticklabels(), axes.get_xticklabels())
    ]
    return np.asarray(axes.images[0].get_array()), *names


def test_words_attend_to_their_sources(trained_translator):
    table, targets, sources = drawn(translation_attention(trained_translator, TEXT))
    assert "".join(targets).replace("▁", " ").strip() == f"{dutch(TEXT)}</s>"
    assert "".join(sources).replace("▁", " ").strip() == f"{TEXT}</s>"
    seen = {
        target: sources[row.argmax()]
        for target, row in zip(targets, table, strict=True)
    }
    whole = [word for word in DUTCH if f"▁{word}" in targets]
    partners = {f"▁{word}": f"▁{ENGLISH[DUTCH.index(word)]}" for word in whole}
    assert len(whole) >= 3
    assert {word: seen[word] for word in partners} == partners


@pytest.mark.parametrize("kind", KINDS)
def test_heads_and_mean_equal_the_models_weights(
    two_layer_translator, kind, monkeypatch
):
    translator = two_layer_translator
    source = translator.encode([TEXT])[0]
    target = translator.tokenizer.encode_target([dutch(TEXT)])[0]
    hypotheses = [Hypothesis(dutch(TEXT), -1.0, target, True)]
    monkeypatch.setattr(Translator, "stream", lambda *_: iter([hypotheses]))
    weights = translator.model.attention_weights(
        {"source_ids": [source], "target_ids": [[2, *target[:-1]]]}
    )
    expected = weights["encoder/0" if kind == "encoder" else f"decoder/0/{PARTS[kind]}"]
    for head, table in ((None, expected[0].mean(axis=0)), (3, expected[0, 2])):
        figure = translation_attention(translator, TEXT, kind, 1, head)
        np.testing.assert_allclose(drawn(figure)[0], table, atol=1e-6)
        assert "layer 1 of 2" in figure.axes[0].get_title()


def test_decoder_reads_from_the_start_token(trained_translator):
    figure = translation_attention(trained_translator, TEXT, "decoder")
    table, predicted, read = drawn(figure)
    assert read == ["<s>", *predicted[:-1]]
    assert (np.triu(table, 1) == 0).all()  # nothing is read before it is there


@pytest.mark.full
def test_translation_without_end_is_drawn(trained_translator):
    translator = trained_translator.copy()
    table = translator.model.target_embedding
    weights = table.get_weights()
    weights[0][translator.model.end_id] = 0  # logit 0: never the highest
    table.set_weights(weights)
    _, targets, _ = drawn(translation_attention(translator, TEXT))
    assert "</s>" not in targets


def test_positions_are_the_sinusoids_of_the_pieces(trained_translator):
    table, names, _ = drawn(translation_positions(trained_translator, TEXT))
    width = trained_translator.model.d_model
    assert len(names) == len(table) and names[-1] == "</s>"
    angles = np.arange(len(table))[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
    np.testing.assert_allclose(table[:, 0::2], np.sin(angles), atol=1e-5)
    np.testing.assert_allclose(table[:, 1::2], np.cos(angles), atol=1e-5)


def test_unknown_pieces_are_drawn(trained_translator):
    _, names, _ = drawn(translation_positions(trained_translator, "zero 动物 two"))
    assert "▁zero" in names and len(names) > 3
