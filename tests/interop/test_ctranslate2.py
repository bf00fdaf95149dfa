"""CTranslate2's models, in and out: the same tokens, scores and translations."""

import json

import keras
import numpy as np
import pytest
import word_reversal
from checks import array, randomize
from marian_folder import learn_models, write_folder, write_tokenizer
from peer_models import learn

from keras_vanilla.interop import from_ctranslate2, from_marian, to_ctranslate2
from keras_vanilla.interop.marian_tokenizer import tokenizer_from_marian
from keras_vanilla.layers import EncoderLayer
from keras_vanilla.models import Transformer
from keras_vanilla.tokenizer import CharacterTokenizer, Tokenizer
from keras_vanilla.translation import Translator

pytestmark = pytest.mark.full
pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
import ctranslate2_peer  # noqa: E402  after the skip
from ctranslate2_runtime import (  # noqa: E402
    assert_greedy_is_equal,
    assert_scores_are_equal,
    open_runtime,
)

ENGLISH = word_reversal.english_sentences(300, seed=0)
DUTCH = [word_reversal.dutch(line) for line in ENGLISH]
SIZES = {
    "d_model": 24,
    "num_heads": 3,
    "d_ff": 37,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "max_length": 80,
}
SPECIAL = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
SEPARATE = {"share_embeddings": False, "output_bias": True}
CONFIGS = {
    "paper": {},
    "pre-norm": {"normalize_first": True, "activation": "silu"},
    "last norms": {"final_norm": True, "layer_norm_epsilon": 1e-2},
    "untied": {"tie_output": False, "output_bias": True, "activation": "gelu"},
    "two vocabularies": {**SEPARATE, "scale_embeddings": False, "decoder_d_ff": 41},
    "three tables": {**SEPARATE, "tie_output": False, "activation": "tanh"},
    "without an end": {"source_end": False, "normalize_first": True},
    "other positions": {"position_layout": "tensor2tensor", "activation": "sigmoid"},
    "forbidden": {"forbidden_ids": [0, 7], "position_layout": "concatenated"},
    "Marian": {"position_layout": "concatenated", "zero_pad": True, **SEPARATE},
}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """A shared vocabulary, two of one size, and Marian's with the pad at its end."""
    both = learn(ENGLISH + DUTCH, vocab_size=58, **SPECIAL)
    languages = [learn(lines, vocab_size=44, **SPECIAL) for lines in (ENGLISH, DUTCH)]
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder, learn_models())
    marian = tokenizer_from_marian(folder)
    return {"one": Tokenizer(both), "two": Tokenizer(*languages), "Marian": marian}


def make(tokenizers, name, **changes):
    config = CONFIGS.get(name, {}) | changes
    separate = not config.get("share_embeddings", True)
    tokenizer = tokenizers[
        "Marian" if name == "Marian" else "two" if separate else "one"
    ]
    ids = {key: getattr(tokenizer, key) for key in ("pad_id", "start_id", "end_id")}
    if name == "Marian":
        config["forbidden_ids"] = [tokenizer.pad_id]
    sizes = {
        "source_vocabulary_size": tokenizer.vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    model = randomize(Transformer(**{**sizes, **SIZES, **ids, **config}), seed=3)
    return Translator(tokenizer, model)


@pytest.fixture(scope="module", params=CONFIGS)
def written(request, tokenizers, tmp_path_factory):
    """The name of a configuration, a Translator of it, and its CTranslate2 folder."""
    translator = make(tokenizers, request.param)
    folder = tmp_path_factory.mktemp("written") / "model"
    to_ctranslate2(translator, folder)
    return request.param, translator, folder


def drawn(translator, count=7):
    """Ids of sources and of targets, each with its end."""
    sources = translator.encode(ENGLISH[:count])
    targets = translator.tokenizer.encode_target(DUTCH[count : 2 * count])
    return sources, targets


def test_scores_equal_those_of_ctranslate2(written):
    _, translator, folder = written
    sources, targets = drawn(translator)
    forbidden = set(translator.model.forbidden_ids)
    targets = [[id_ for id_ in row if id_ not in forbidden] for row in targets]
    assert_scores_are_equal(open_runtime(folder), translator, sources, targets)


@pytest.mark.parametrize("name", ["forbidden", "without an end", "Marian"])
def test_greedy_search_is_that_of_ctranslate2(name, tokenizers, tmp_path):
    translator = make(tokenizers, name, num_decoder_layers=1, num_encoder_layers=1)
    to_ctranslate2(translator, tmp_path / "model")
    runtime = open_runtime(tmp_path / "model")
    sources, _ = drawn(translator)
    received = assert_greedy_is_equal(runtime, translator, sources, max_length=11)
    assert len({id_ for row in received for id_ in row}) > 2


def test_out_and_in_again_is_exact(written, tmp_path):
    name, translator, folder = written
    again = from_ctranslate2(folder)
    config = translator.model.get_config() | {"name": again.model.name}
    config["final_norm"] = translator.model.encoder_norm is not None
    config["output_bias"] |= bool(config["forbidden_ids"])
    assert again.model.get_config() == config | (
        {"zero_pad": True} if name == "Marian" else {}
    )
    expected = {weight.path: array(weight) for weight in translator.model.weights}
    for weight in again.model.weights:
        values = array(weight)
        if name == "Marian":  # the pad's, which nothing reads
            values, expected[weight.path] = values[:-1], expected[weight.path][:-1]
        if weight.path in expected:
            np.testing.assert_array_equal(values, expected[weight.path], weight.path)
        else:
            assert weight.path == "logits_bias/bias" and not values.any()
    assert again.tokenizer.get_config() == translator.tokenizer.get_config()
    assert again.tokenizer.source_model == translator.tokenizer.source_model
    assert again.tokenizer.target_model == translator.tokenizer.target_model
    to_ctranslate2(again, tmp_path / "second")
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes()


@pytest.mark.parametrize("quantize", [None, "int8"])
@pytest.mark.parametrize("changes", [{}, SEPARATE], ids=["one table", "two tables"])
def test_files_are_those_of_ctranslate2s_own_converter(
    quantize, changes, tokenizers, tmp_path
):
    translator = make(tokenizers, "", **changes)
    to_ctranslate2(translator, tmp_path / "ours", quantize)
    ctranslate2_peer.write(translator, tmp_path / "theirs", quantize)
    for file in (tmp_path / "theirs").iterdir():
        ours = (tmp_path / "ours" / file.name).read_bytes()
        if file.suffix == ".json":
            assert json.loads(ours) == json.loads(file.read_bytes())
        else:
            assert ours == file.read_bytes()


@pytest.mark.parametrize(
    ("quantize", "error"), [("int8", 1 / 254), ("float16", 2**-11)]
)
def test_smaller_weights_are_read_within_rounding(
    quantize, error, tokenizers, tmp_path
):
    translator = make(tokenizers, "untied")
    to_ctranslate2(translator, tmp_path / "small", quantize)
    to_ctranslate2(translator, tmp_path / "whole")
    sizes = [(tmp_path / x / "model.bin").stat().st_size for x in ("small", "whole")]
    assert sizes[0] < (0.45 if quantize == "int8" else 0.55) * sizes[1]
    again = from_ctranslate2(tmp_path / "small")
    pairs = zip(again.model.weights, translator.model.weights, strict=True)
    for received, expected in pairs:
        received, expected = array(received), array(expected)
        atol = error * max(np.abs(expected).max(), 1e-2) * 1.01
        np.testing.assert_allclose(received, expected, rtol=0, atol=atol)
    runtime = open_runtime(tmp_path / "small", "float32")  # dequantised as well
    rounding = 1e-3 if quantize == "float16" else 1e-4  # of the positions, not ours
    assert_scores_are_equal(runtime, again, *drawn(again), rounding)


def test_marian_model_of_ctranslate2s_converter_is_read(tmp_path):
    """It has no pad, begins with zeros, and leaves the source's end to the user."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("transformers", reason="transformers is missing")
    from ctranslate2.converters import TransformersConverter

    write_folder(tmp_path / "marian", "opus-mt", learn_models())
    files = ["source.spm", "target.spm"]
    converter = TransformersConverter(str(tmp_path / "marian"), copy_files=files)
    converter.convert(str(tmp_path / "model"))
    received, expected = (
        from_ctranslate2(tmp_path / "model"),
        from_marian(tmp_path / "marian"),
    )
    assert received.encode(ENGLISH) == expected.encode(ENGLISH)
    for name in ("forbidden_ids", "pad_id", "start_id", "zero_pad", "source_end"):
        assert getattr(received.model, name) == getattr(expected.model, name)
    sources, targets = drawn(expected, count=1)
    targets = np.array([[expected.model.start_id, *targets[0]]])
    feed = {"source_ids": np.array(sources), "target_ids": targets}
    pad = expected.model.pad_id
    np.testing.assert_allclose(
        array(received.model(feed))[..., :pad],
        array(expected.model(feed))[..., :pad],
        atol=1e-5,
    )


def test_trained_translator_translates_equally(
    trained_translator, unseen_sentences, tmp_path
):
    to_ctranslate2(trained_translator, tmp_path / "model")
    runtime = open_runtime(tmp_path / "model")
    sources = trained_translator.encode(unseen_sentences)
    received = assert_greedy_is_equal(runtime, trained_translator, sources, 60)
    assert len(received) == 200


@keras.saving.register_keras_serializable("test_ctranslate2")
def own_layer(**arguments):
    return EncoderLayer(**arguments)


def test_unsupported_translators_are_refused(tokenizers, tmp_path):
    marian = tokenizers["Marian"].with_target_language("nld")
    characters = CharacterTokenizer(list("abc"))
    whole = Transformer(characters.vocabulary_size, **SIZES)
    for other, quantize, message in (
        (make(tokenizers, "", activation="softplus"), None, "Received: .*'softplus'"),
        (make(tokenizers, "", encoder_layer=own_layer), None, "paper's.*encoder_layer"),
        (Translator(characters, whole), None, "Received: a CharacterTokenizer"),
        (Translator(marian, make(tokenizers, "Marian").model), None, r"uage\(None\)`"),
        (make(tokenizers, ""), "int4", "`quantize` must be one of .*'int4'"),
    ):
        with pytest.raises(ValueError, match=message):
            to_ctranslate2(other, tmp_path / "model", quantize)
    assert not list(tmp_path.iterdir())
