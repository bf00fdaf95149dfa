"""Files that JAX writes without TensorFlow do what TensorFlow's files do."""

import numpy as np
import pytest
from text_form import TextForm

pytestmark = pytest.mark.full


def test_outputs_are_those_of_tensorflow_s_file(
    float32_file, float32_file_on_jax, unseen_sentences
):
    files = [TextForm(path) for path in (float32_file, float32_file_on_jax)]
    for text in [*unseen_sentences, "", "one " * 28, "one two " * 20, "ﷺ" * 50]:
        expected, received = (file(text) for file in files)
        assert received.keys() == expected.keys()
        for name in ("ids", "text"):
            np.testing.assert_array_equal(received[name], expected[name], text)
        for name in ("score", "probability", "known"):
            np.testing.assert_allclose(received[name], expected[name], atol=1e-3)


def test_beams_and_token_outputs_are_keras_s(
    files_on_jax, trained_translator, unseen_sentences
):
    translate, texts = TextForm(files_on_jax / "beams.tflite"), unseen_sentences[:30]
    results = [translate(text) for text in texts]
    expected = trained_translator.translate(texts, beam_size=4)
    assert [result["text"] for result in results] == expected
    for text, result in zip(texts, results, strict=True):
        count = np.count_nonzero(result["ids"])
        assert result["text_ends"][count - 1] == len(result["text"].encode())
        first, last = result["source_spans"][: count - 1].T
        assert (first < last).all() and (last <= len(text.encode())).all()
        assert ((result["confidence"] > 0)[:count]).all()
