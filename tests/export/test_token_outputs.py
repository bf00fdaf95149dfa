"""What a file says of each token, against Keras and SentencePiece."""

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import word_reversal
from pieces_in_text import decoded_pieces, encoded_pieces
from teacher_forcing import forced_inputs, log_probabilities
from text_form import TextForm

from keras_vanilla import export
from keras_vanilla._operators import use_operators
from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.export import read_description, signatures
from keras_vanilla.export.config import ExportConfig
from keras_vanilla.export.phone_operators import DynamicShapes
from keras_vanilla.export.to_tflite import described

pytestmark = pytest.mark.full
SMALL = {"max_bytes": 160, "max_source_length": 40, "max_length": 59}
BEAMS = {"beam_size": 3, "length_penalty": 0.8}
ODD = [
    "one  two",
    " three  ",
    "zéro one",
    "One ten",
    "\u3000six\u00a0seven",
    "ﬁve one",
    "日本 two",
]


@pytest.fixture(scope="module", params=[{}, BEAMS], ids=["greedy", "beams"])
def path(request, trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs") / "translator.tflite"
    settings = {**SMALL, "quantize": None, "check": "structure", **request.param}
    settings |= {"outputs": ["confidence", "alignment"]}
    export.tflite(trained_translator, path, **settings)
    return path


def expected_of(translator, text, ids):
    """Text ends, spans and probabilities of the tokens, none of them from our graph."""
    model, tokenizer = translator.model, translator.tokenizer
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = encoded_pieces(peer, text.encode())
    (source,) = tokenizer.encode([text])
    layer = alignment_layer(model.num_decoder_layers)
    weights = model.attention_weights(forced_inputs(model, source, ids))
    weights = weights[f"decoder/{layer}/cross"][0].mean(axis=0)
    attended = weights[:, : len(pieces)].argmax(axis=1)
    ends = [p.end for p in decoded_pieces(peer, [int(i) for i in ids[:-1]])]
    spans = [[pieces[i].begin, pieces[i].end] for i in attended]
    return ends, spans, np.exp(log_probabilities(model, source, ids))


def test_translations_and_scores_are_keras_s(
    path, trained_translator, unseen_sentences
):
    report = export.verify(trained_translator, path, unseen_sentences[:40])
    assert report.passed, report
    description, translate = read_description(path), TextForm(path)
    assert description.rows()["of each token"] == "alignment, confidence"
    if description.beam_size == 1:  # its score adds up log-probabilities
        return
    texts = unseen_sentences[:5]
    expected = trained_translator.translate_n_best(texts, n_best=1, **BEAMS)
    for text, ((best, score),) in zip(texts, expected, strict=True):
        result = translate(text)
        assert result["text"] == best
        assert result["score"] == pytest.approx(score, abs=1e-4)


def test_outputs_are_those_of_keras_and_sentencepiece(path, trained_translator):
    translate = TextForm(path)
    texts = word_reversal.english_sentences(9, seed=3, lengths=range(1, 8))
    for text in [*texts, *ODD]:
        result = translate(text)
        count = int((result["ids"] != trained_translator.model.pad_id).sum())
        ids = result["ids"][:count]
        assert ids[-1] == trained_translator.model.end_id
        ends, spans, probabilities = expected_of(trained_translator, text, ids)
        assert result["text_ends"][: count - 1].tolist() == ends, text
        assert set(result["text_ends"][count - 1 :].tolist()) == {max([0, *ends])}
        assert result["source_spans"][: count - 1].tolist() == spans[:-1], text
        assert not result["source_spans"][count - 1 :].any()
        np.testing.assert_allclose(
            result["confidence"][:count], probabilities, atol=1e-4
        )
        assert not result["confidence"][count:].any()
    for text in ("", "   ", "é" * 70):
        result = translate(text)
        for name in ("text_ends", "source_spans", "confidence"):
            assert not result[name].any()


@pytest.mark.parametrize(
    "output, names",
    [("alignment", {"source_spans"}), ("confidence", {"confidence"})],
)
def test_each_output_can_be_alone(small_translator, output, names):
    config = ExportConfig.of(outputs=[output], **SMALL)
    description = described(small_translator, "x", config)
    form = signatures.TextForm(small_translator, description)
    translate, inputs = form.signatures()["translate"]
    specs = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in inputs.items()}
    with use_operators(DynamicShapes()):
        function = tf.function(translate).get_concrete_function(**specs)
    always = {"text", "ids", "score", "probability", "known"}
    expected = always | {"text_ends"} | names
    assert set(function.structured_outputs) == expected
