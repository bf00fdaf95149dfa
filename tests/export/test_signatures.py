"""Whole translations in one file: LiteRT against Keras and SentencePiece."""

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from pieces_in_text import known_share
from teacher_forcing import log_probabilities
from text_form import TextForm
from tiers import in_full

from keras_vanilla import export
from keras_vanilla.decoding import greedy_search
from keras_vanilla.models import fake_quantize

FILES = {
    "int8": "text_file",
    None: "float32_file",
    "int8 on JAX": "int8_file_on_jax",
    "float32 on JAX": "float32_file_on_jax",
}


@pytest.fixture(scope="module", params=["int8", *in_full(*list(FILES)[1:])])
def caller(request):
    caller = TextForm(request.getfixturevalue(FILES[request.param]))
    caller.quantized = "int8" in (request.param or "")
    return caller


def test_shapes_are_static_and_named(caller):
    inputs, outputs = caller.run.get_input_details(), caller.run.get_output_details()
    for details, shape, dtype in (
        (inputs["text"], [160], np.uint8),
        (outputs["ids"], [59], np.int32),
        (outputs["score"], [], np.float32),
        (outputs["probability"], [], np.float32),
        (outputs["known"], [], np.float32),
    ):
        assert details["dtype"] == dtype
        assert details["shape"].tolist() == details["shape_signature"].tolist() == shape
    assert outputs["text"]["dtype"] == np.uint8 and len(outputs["text"]["shape"]) == 1


def test_text_and_score_are_those_of_ids(caller, trained_translator, unseen_sentences):
    translator = trained_translator.copy()
    model, tokenizer = translator.model, translator.tokenizer
    if caller.quantized:
        fake_quantize(model, "int8")  # a probability moves more than a rounding
    texts = unseen_sentences[:30]
    results = [caller(text) for text in texts]
    received = [result["text"] for result in results]
    assert sum(map(str.__eq__, received, trained_translator.translate(texts))) >= 29
    for text, result in zip(texts[:10], results, strict=False):
        assert tokenizer.decode([result["ids"].tolist()]) == [result["text"]]
        (source,) = tokenizer.encode([text])
        ids = result["ids"][: result["ids"].tolist().index(model.end_id) + 1]
        expected = log_probabilities(model, source, ids).sum()
        assert result["score"] == pytest.approx(expected, abs=0.01)
        mean = np.exp(expected / len(ids))
        assert result["probability"] == pytest.approx(mean, abs=0.01)


@pytest.mark.parametrize(
    "text, score",
    [
        *((blank, 0.0) for blank in ("", " ", "\0", "\t \u3000")),
        *((long, np.nan) for long in ("ž" * 80, "€" * 53, "one two " * 20)),
    ],
)
def test_blank_and_too_long_texts_have_no_translation(caller, text, score):
    result = caller(text)
    assert result["text"] == "" and not result["ids"].any()
    np.testing.assert_equal(float(result["score"]), score)


@pytest.mark.parametrize(
    "text",
    [
        "one " * 28,  # as many tokens as the file takes
        "🙂🙂",
        "oné e\u0301 two",
        "one\x01\x07two",
        "one Привет 漢字 שלום",
        b"one \xff\xc3( two",
        b"one\0two",
        b"\x80" * 20,
        bytes(range(1, 30)),
    ],
)
def test_odd_bytes_are_translated_as_sentencepiece_reads_them(
    caller, trained_translator, text
):
    result = caller(text)
    ids = trained_translator.tokenizer._source.encode(text)  # takes bytes as well
    ids = np.array([[*ids, trained_translator.tokenizer.end_id]])
    if ids.shape[1] > 29:
        assert np.isnan(result["score"])
        return
    assert np.isfinite(result["score"])
    known = known_share(trained_translator.tokenizer._source, text)
    assert result["known"] == pytest.approx(known, abs=1e-6)
    if ids.shape[1] == 1:  # control characters alone
        assert result["text"] == "" and not result["ids"].any()
        return
    expected = np.asarray(greedy_search(trained_translator.model, ids))[0, :59]
    if not caller.quantized:  # int8 may say other words of nonsense
        assert result["ids"][: len(expected)].tolist() == expected.tolist()
        assert [result["text"]] == trained_translator.tokenizer.decode([expected])


@pytest.mark.full
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_app_can_search_by_steps(
    trained_translator, unseen_sentences, tmp_path, quantize
):
    path = tmp_path / "steps.tflite"
    settings = {"max_source_length": 29, "max_length": 59, "check": "structure"}
    export.tflite(trained_translator, path, quantize=quantize, form="steps", **settings)
    signatures = Interpreter(model_path=str(path)).get_signature_list()
    assert set(signatures) == {"encode", "decode_step"}
    report = export.verify(trained_translator, path, unseen_sentences[:40])
    assert report.passed, report
