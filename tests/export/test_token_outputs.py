"""What a file says of each token, against Keras and SentencePiece."""

import dataclasses

import numpy as np
import pytest
import sentencepiece
import word_reversal
from ai_edge_litert.interpreter import Interpreter
from tiers import in_full

from keras_vanilla import export
from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.export.metadata.description import read_description

SMALL = {"max_bytes": 160, "max_source_length": 40, "max_length": 59}
BOTH = ("alignment", "confidence")
ODD = [
    "one  two",
    " three  ",
    "zéro one",
    "One ten",
    "\u3000six\u00a0seven",
    "ﬁve one",
    "日本 two",
]


def runner(path):
    return Interpreter(model_path=str(path)).get_signature_runner("translate")


def call(run, text):
    size = run.get_input_details()["text"]["shape"][0]
    octets = np.frombuffer(text.encode().ljust(size, b"\0"), "uint8")
    return run(text=octets)


@pytest.fixture(scope="module", params=[1, *in_full(3)])
def path(request, trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs") / "translator.tflite"
    settings = {**SMALL, "beam_size": request.param, "quantize": None}
    settings |= {"outputs": ["confidence", "alignment"], "check": "structure"}
    export.tflite(trained_translator, path, **settings)
    return path


def expected_of(translator, text, ids):
    """Text ends, spans and probabilities of the tokens, none of them from our graph."""
    model, tokenizer = translator.model, translator.tokenizer
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = peer.encode_as_proto(text.encode()).pieces
    inputs = {
        "source_ids": np.array(tokenizer.encode([text])),
        "target_ids": np.array([[model.start_id, *ids[:-1]]]),
    }
    logits = np.asarray(model(inputs)[0], "float64")
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    layer = alignment_layer(model.num_decoder_layers)
    weights = model.attention_weights(inputs)[f"decoder/{layer}/cross"][0].mean(axis=0)
    attended = weights[:, : len(pieces)].argmax(axis=1)
    ends = [p.end for p in peer.decode_ids_as_proto([int(i) for i in ids[:-1]]).pieces]
    spans = [[pieces[i].begin, pieces[i].end] for i in attended]
    return ends, spans, probabilities[np.arange(len(ids)), ids]


def test_they_are_keras_s_and_sentencepiece_s(path, trained_translator):
    run, count = runner(path), trained_translator.model.pad_id
    texts = word_reversal.english_sentences(30, seed=3, lengths=range(1, 8))
    for text in [*texts, *ODD]:
        said = call(run, text)
        count = int((said["ids"] != trained_translator.model.pad_id).sum())
        ids = said["ids"][:count]
        assert ids[-1] == trained_translator.model.end_id
        ends, spans, probabilities = expected_of(trained_translator, text, ids)
        assert said["text_ends"][: count - 1].tolist() == ends, text
        assert set(said["text_ends"][count - 1 :].tolist()) == {max([0, *ends])}
        assert said["source_spans"][: count - 1].tolist() == spans[:-1], text
        assert not said["source_spans"][count - 1 :].any()
        np.testing.assert_allclose(said["confidence"][:count], probabilities, atol=1e-4)
        assert not said["confidence"][count:].any()


def test_words_are_linked_to_those_they_translate(path):
    """The toy language has its words in reverse order: each one's partner is known."""
    run, right, total = runner(path), 0, 0
    for text in word_reversal.english_sentences(60, seed=4, lengths=range(2, 8)):
        said = call(run, text)
        translation = said["text"].tobytes().rstrip(b"\0").decode()
        if translation != word_reversal.dutch(text):
            continue
        begin, words = 0, text.split()
        for end, span in zip(said["text_ends"], said["source_spans"], strict=True):
            if begin < end:
                place = len(translation[:end].split()) - 1
                source = text.encode()[slice(*span)].decode().split()
                right += source and words[-1 - place].find(source[0]) >= 0
                total += 1
            begin = end
    assert total > 200 and right / total > 0.9


@pytest.mark.parametrize("text", ["", "   ", "é" * 70])
def test_a_text_that_is_not_translated_has_no_tokens(path, text):
    said = call(runner(path), text)
    for name in ("text_ends", "source_spans", "confidence"):
        assert not said[name].any()


def test_the_file_says_what_it_says(path):
    description = read_description(path)
    assert description.outputs == ["alignment", "confidence"]
    assert description.rows()["of each token"] == "alignment, confidence"
    without = dataclasses.replace(description, outputs=[])
    assert "of each token" not in without.rows()


@pytest.mark.full
@pytest.mark.parametrize("outputs", [["alignment"], ["confidence"]])
def test_each_can_be_had_alone(outputs, trained_translator, tmp_path):
    path = tmp_path / "one.tflite"
    settings = {**SMALL, "outputs": outputs, "check": "structure"}
    export.tflite(trained_translator, path, **settings)
    said = call(runner(path), "one two")
    own = {"alignment": "source_spans", "confidence": "confidence"}
    assert set(said) == {"text", "ids", "score", "text_ends", own[outputs[0]]}


@pytest.mark.parametrize(
    "outputs, form, error, words",
    [
        (
            "alignment",
            "text",
            TypeError,
            "must be a list of str. Received: 'alignment'",
        ),
        (["scores"], "text", ValueError, "Received: 'scores'"),
        (["confidence"], "ids", ValueError, "form 'text'.*confidence.*form='ids'"),
    ],
)
def test_others_are_refused(outputs, form, error, words, trained_translator, tmp_path):
    with pytest.raises(error, match=words):
        path = tmp_path / "x.tflite"
        export.tflite(trained_translator, path, outputs=outputs, form=form)
