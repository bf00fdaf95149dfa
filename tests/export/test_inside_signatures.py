"""The attention weights and the steps of a file are those of the model."""

import json

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from once_per_run import made_once

from keras_vanilla import export
from keras_vanilla.export.metadata.flatbuffer import read_metadata

pytestmark = pytest.mark.full
MAX_BYTES = 160


@pytest.fixture(scope="module", params=["TensorFlow", "JAX"])
def path(request, trained_translator, tmp_path_factory):
    if request.param == "JAX":
        return request.getfixturevalue("files_on_jax") / "inside.tflite"

    def write(path):
        settings = {"max_bytes": MAX_BYTES, "max_source_length": 29, "max_length": 59}
        settings |= {"form": "inside", "quantize": None, "check": "structure"}
        export.tflite(trained_translator, path, **settings)

    return made_once(tmp_path_factory, "inside.tflite", write)


@pytest.fixture(scope="module")
def inside(path):
    interpreter = Interpreter(model_path=str(path))
    names = "encode", "decode_step"
    return {name: interpreter.get_signature_runner(name) for name in names}


def _encode(inside, text):
    content = np.frombuffer(text.encode(), np.uint8)
    padded = np.pad(content, (0, MAX_BYTES - len(content)))
    return dict(inside["encode"](text=padded))


def _translate(inside, encoded, model):
    """Greedy search over the steps: the ids, and each step's weights."""
    step = inside["decode_step"]
    details = step.get_input_details()
    cache = {
        name: encoded.get(name, np.zeros(detail["shape"], detail["dtype"]))
        for name, detail in details.items()
        if name not in ("ids", "index")
    }
    ids, steps = [model.start_id], []
    while ids[-1] != model.end_id and len(steps) < 58:
        last, index = np.array([ids[-1]], np.int32), np.int32(len(steps))
        steps.append(dict(step(ids=last, index=index, **cache)))
        cache.update({name: steps[-1][name] for name in cache if "_self_" in name})
        ids.append(int(np.argmax(steps[-1]["logits"])))
    return ids, steps


def test_weights_and_translations_are_the_models(
    inside, trained_translator, unseen_sentences
):
    model, texts = trained_translator.model, unseen_sentences[:8]
    translations = trained_translator.translate(texts, beam_size=1)
    for text, translation in zip(texts, translations, strict=True):
        encoded = _encode(inside, text)
        count = int(encoded["count"])
        source = encoded["source_ids"][:, :count]
        np.testing.assert_array_equal(source[0], trained_translator.encode([text])[0])
        ids, steps = _translate(inside, encoded, model)
        assert trained_translator.tokenizer.decode([ids[1:-1]]) == [translation]
        target = np.array([ids[:-1]], np.int32)
        expected = model.attention_weights({"source_ids": source, "target_ids": target})
        for name, weights in expected.items():
            got = _weights(encoded, steps, name.replace("/", "_"))
            got = got[:, :, : weights.shape[2], : weights.shape[3]]
            np.testing.assert_allclose(got, weights, atol=1e-3, err_msg=name)


def _weights(encoded, steps, name):
    if name in encoded:
        return encoded[name]
    return np.concatenate([step[name] for step in steps], axis=2)


def test_inside_file_is_described_and_verified(
    path, inside, trained_translator, unseen_sentences
):
    description = export.read_description(path)
    assert (description.form, description.max_bytes) == ("inside", MAX_BYTES)
    assert description.search == "none: the app's own"
    report = export.verify(trained_translator, path, unseen_sentences[:40])
    assert report.passed and not report.differences, str(report)
    text = "one " * 35
    expected = len(trained_translator.encode([text])[0])
    assert int(_encode(inside, text)["count"]) == expected > 29
    tokenizer = trained_translator.tokenizer
    vocabulary = json.loads(read_metadata(path, "keras_vanilla_vocabulary"))
    assert (vocabulary["start_id"], vocabulary["pad_id"]) == (2, 0)
    assert len(vocabulary["pieces"]) == tokenizer.target_vocabulary_size
    ids = tokenizer.encode_target(["boom rood"])[0][:-1]
    assert [vocabulary["pieces"][id_] for id_ in ids] == tokenizer.target_pieces(ids)
