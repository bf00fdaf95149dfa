"""Hugging Face's Marian models, in and out: the same ids, logits, translations."""

import json
import shutil

import numpy as np
import pytest
from checks import array
from marian_folder import (
    FAMILIES,
    learn_models,
    write_folder,
    write_model,
    write_tokenizer,
)
from near_ties import assert_same_but_for_near_ties
from word_reversal import dutch, english_sentences

from keras_vanilla import export
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.decoding import DecodingConfig, beam_search
from keras_vanilla.interop import from_marian, to_marian
from keras_vanilla.training import train_translator
from keras_vanilla.translation import Translator

from .same_translators import assert_same_weights

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is missing")

LINES = english_sentences(12, seed=5)
TOLERANCE = 1e-5  # of logits of about 1
LENGTH = 11  # of the longest outputs
BEAM = {"beam_size": 3, "length_normalization": "power", "length_penalty": 1.0}
BEAM["max_length"] = LENGTH
ROUNDING = 1e-5  # of a score
FEW = pytest.mark.parametrize(
    "family", ["opus-mt-tc-base", "two vocabularies, untied"], indirect=True
)


@pytest.fixture(scope="module")
def models():
    return learn_models()


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, models, tmp_path_factory):
    """A folder, Hugging Face's model and tokenizer of it, and our Translator."""
    folder = tmp_path_factory.mktemp("marian") / "model"
    model = write_folder(folder, request.param, models)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    return folder, model, tokenizer, from_marian(folder)


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "model"
    write_folder(folder, "opus-mt", models)
    return folder


@pytest.fixture(scope="module")
def shallow(models, tmp_path_factory):
    """Our Translator of a model with one layer a stack, which is quickly traced."""
    folder = tmp_path_factory.mktemp("shallow")
    vocabularies = write_tokenizer(folder, models, end_in_the_middle=True)
    write_model(folder, vocabularies, encoder_layers=1, decoder_layers=1)
    return from_marian(folder)


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "model")


def their_logits(model, batch, targets):
    with torch.no_grad():
        logits = model(**batch, decoder_input_ids=torch.tensor(targets)).logits
    return logits.numpy()


def their_search(model, batch, **settings):
    """Rows of ids without the start, and with beams the scores."""
    with torch.no_grad():
        output = model.generate(
            **batch,
            max_length=LENGTH + 1,
            return_dict_in_generate=True,
            output_scores=True,
            **settings,
        )
    return output.sequences.numpy()[:, 1:], output.get("sequences_scores")


def test_ids_and_logits_are_those_of_transformers(family):
    _, model, tokenizer, ours = family
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    ids = [row[row != ours.model.pad_id].tolist() for row in batch.input_ids.numpy()]
    assert ours.encode(LINES) == ids
    pad, size = ours.model.pad_id, ours.model.target_vocabulary_size
    drawn = np.random.default_rng(0).integers(2, size - 1, (len(LINES), 7))
    targets = np.concatenate([np.full((len(LINES), 1), pad), drawn], axis=1)
    expected = their_logits(model, batch, targets)
    feed = {"source_ids": batch.input_ids.numpy(), "target_ids": targets}
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(array(ours.model(feed)), expected, atol=TOLERANCE)


@FEW
def test_greedy_search_is_that_of_transformers(family):
    _, model, tokenizer, ours = family
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    expected, _ = their_search(model, batch)
    ids = ours.search(ours.encode(LINES), DecodingConfig(max_length=LENGTH))
    assert len(np.unique(ids)) > 2
    assert_same_but_for_near_ties(ours.model, ours.encode(LINES), ids, expected)


@pytest.fixture(scope="module")
def ending(models, tmp_path_factory):
    """A batch, the model of `transformers` and ours; outputs are of many lengths."""
    folder = tmp_path_factory.mktemp("ending")
    source, target = write_tokenizer(folder, models, separate=True)
    layers = {"encoder_layers": 1, "decoder_layers": 1, "tie_word_embeddings": False}
    model = write_model(folder, (source, target), seed=1, **layers)
    with torch.no_grad():
        model.final_logits_bias[:, target["</s>"]] += 1.0
    model.save_pretrained(folder)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    lines = english_sentences(30, seed=6)
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    return batch, model, from_marian(folder).model


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
def test_refilled_beam_is_that_of_transformers(ending, early_stopping):
    """All hypotheses of each row and their scores, but for near-ties."""
    batch, model, ours = ending
    expected, their_scores = their_search(
        model,
        batch,
        num_beams=3,
        num_return_sequences=3,
        length_penalty=1.0,
        early_stopping=early_stopping,
    )
    shape = len(batch.input_ids), 3
    expected, their_scores = (
        np.reshape(x, (*shape, -1)) for x in (expected, their_scores.numpy())
    )
    assert len(np.unique((expected[:, 0] != ours.pad_id).sum(axis=1))) > 3
    for mine in (early_stopping, None):
        ids, scores = beam_search(
            ours, batch.input_ids.numpy(), early_stopping=mine, **BEAM
        )
        ids = array(ids, "int32")[:, :, : expected.shape[2]]
        same = (ids == expected).all(axis=2)
        if mine is None:  # the other search would not pass
            assert same.mean() < 0.8
        else:
            assert same.mean() > 0.95
            np.testing.assert_allclose(
                array(scores)[same], their_scores[same, 0], atol=ROUNDING
            )


@FEW
def test_out_and_in_again_gives_the_same_files_and_weights(family, tmp_path):
    _, _, _, ours = family
    to_marian(ours, tmp_path / "first")
    again = from_marian(tmp_path / "first")
    to_marian(again, tmp_path / "second")
    for file in (tmp_path / "first").iterdir():
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes()
    assert_same_weights(again.model, ours.model)
    assert again.encode(LINES) == ours.encode(LINES)


def test_exported_file_translates_equally(shallow, tmp_path):
    path = tmp_path / "translator.tflite"
    export.tflite(shallow, path, quantize=None, max_length=LENGTH, check="structure")
    report = export.verify(shallow, path, LINES)
    assert not report.differences and not report.text_differences
    assert [reason[-10:] for reason in report.reasons] == ["never end."]  # not trained


def test_marian_model_is_trained_further(shallow, tmp_path):
    corpus = ParallelCorpus.from_pairs([(line, dutch(line)) for line in LINES * 4])
    settings = {"epochs": 1, "tokens_per_batch": 128, "learning_rate": 1e-3}
    start = shallow.copy()  # which is trained in place
    tuned = train_translator(corpus, tmp_path / "out", translator=start, **settings)
    assert tuned.model.forbidden_ids == shallow.model.forbidden_ids
    pad, start = tuned.model.pad_id, np.array([[tuned.model.start_id]])
    assert pad == start and not array(tuned.model.target_embedding(start)).any()
    moved = tuned.model.get_weights()[0] - shallow.model.get_weights()[0]
    assert np.abs(moved).max() > 1e-3


def test_enlarged_tables_and_added_codes(folder, copy, tmp_path):
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    tokens = len(tokenizer)
    assert tokenizer.add_tokens([">>fra<<"]) == 1
    tokenizer.save_pretrained(copy)
    model = transformers.MarianMTModel.from_pretrained(folder)
    model.resize_token_embeddings(tokens + 6)
    with torch.no_grad():  # what a search would choose if it could
        model.final_logits_bias[:, tokens + 1 :] = 1.0
    model.save_pretrained(copy)
    config = json.loads((copy / "generation_config.json").read_text())
    config["eos_token_id"] = [config["eos_token_id"]]
    (copy / "generation_config.json").write_text(json.dumps(config))
    model = transformers.MarianMTModel.from_pretrained(copy).eval()
    assert model.generation_config.eos_token_id == [0]

    ours = from_marian(copy)
    texts = [f">>fra<< {line}" for line in LINES[:6]] + LINES[6:]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    pad, sources = ours.model.pad_id, batch.input_ids.numpy()
    encoded = ours.encode(texts)
    assert encoded == [row[row != pad].tolist() for row in sources]
    assert {row[0] for row in encoded[:6]} == {tokens}
    targets = np.random.default_rng(0).integers(2, tokens + 6, (len(LINES), 7))
    targets = np.where(targets == pad, tokens, targets)
    targets[:, 0] = pad
    expected = their_logits(model, batch, targets)
    received = array(ours.model({"source_ids": sources, "target_ids": targets}))
    np.testing.assert_allclose(received, expected, atol=TOLERANCE)

    nameless = list(range(tokens + 1, tokens + 6))
    assert sorted(ours.model.forbidden_ids) == [pad, *nameless]
    bad_words = {"bad_words_ids": [[id_] for id_ in (pad, *nameless)]}
    expected, _ = their_search(model, batch, **bad_words)
    ids = ours.search(encoded, DecodingConfig(max_length=LENGTH))
    assert_same_but_for_near_ties(ours.model, encoded, ids, expected)
    to_marian(ours, tmp_path / "again")
    assert from_marian(tmp_path / "again").encode(texts) == encoded


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_written_model_equals_ours_in_transformers(
    layout, trained_translator, tmp_path
):
    ours = trained_translator
    if layout != ours.model.position_layout:
        to_marian(ours, tmp_path / "first")
        ours = from_marian(tmp_path / "first")
    to_marian(ours, tmp_path / "model")
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "model").eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "model")
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    with torch.no_grad():
        ids = model.generate(**batch, max_length=30)
    theirs = tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert theirs == trained_translator.translate(LINES)
    feed = {"source_ids": batch.input_ids.numpy(), "target_ids": ids.numpy()}
    expected = their_logits(model, batch, feed["target_ids"])
    received = array(ours.model(feed))
    real = feed["target_ids"] != ours.model.pad_id
    np.testing.assert_allclose(received[real], expected[real], atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "bart"}, "of the type 'marian'. Received: 'bart'"),
        ({"normalize_before": True}, "normalize_before=False.* Received: True"),
        ({"decoder_attention_heads": 4}, "equal numbers of heads.* 3 and 4"),
        ({"activation_function": "gelu_new"}, "`activation_function` .*'gelu_new'"),
        ({"bad_words_ids": [[5, 6]]}, r"words of one id.*\[\[5, 6\]\]"),
        ({"d_model": 10**6}, "shape .*1000000.*Received: .*12"),
        ({"encoder_ffn_dim": 10**8}, r"encoder/0/.*\(12, 100000000\).*\(12, 17\)"),
        ({"decoder_ffn_dim": 10**8}, r"decoder/0/.*\(12, 100000000\).*\(12, 19\)"),
        ({"decoder_layers": 10**9}, "no weights 'model.decoder.layers.3.self_attn"),
        ({"max_position_embeddings": 10**12}, "`max_length` .*1000000000000"),
        ({"encoder_layers": 3}, "no weights 'model.encoder.layers.2.self_attn"),
        ({"encoder_layers": 1}, "weights 'model.encoder.layers.1.*has no place"),
        ({"vocab_size": 99}, r"source_embedding .*\(99, 12\).*\(57, 12\)"),
        ({"eos_token_id": [0, 5]}, r"one id as eos_token_id.* Received: \[0, 5\]"),
        (
            {"decoder_start_token_id": 0},
            "`decoder_start_token_id` .* pad.* Received: 0",
        ),
        ({"decoder_start_token_id": None}, "id as decoder_start_token_id.* None"),
    ],
)
def test_configurations_of_other_models_are_refused(changes, message, copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | changes))
    (copy / "generation_config.json").unlink()
    with pytest.raises(ValueError, match=message):
        from_marian(copy)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.json"])
def test_missing_file_is_named(name, copy):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        from_marian(copy)


def test_unsupported_models_are_refused(trained_translator, tmp_path):
    model = trained_translator.model
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    config = model.get_config() | layers
    for changes, message in (
        ({"normalize_first": True}, "normalize_first=False. Received: .*True"),
        ({"final_norm": True}, "has encoder_norm=None"),
        ({"source_end": False}, "has source_end=True"),
        ({"layer_norm_epsilon": 1e-3}, "layer_norm_epsilon=1e-05. Received: .*0.001"),
        ({"activation": "tanh"}, "`activation` .*'tanh'"),
        ({"position_layout": "tensor2tensor"}, "`position_layout` .*'tensor2tensor'"),
    ):
        other = type(model).from_config(config | changes)
        translator = Translator(trained_translator.tokenizer, other)
        with pytest.raises(ValueError, match=message):
            to_marian(translator, tmp_path / "model")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileExistsError, match="exists already"):
        to_marian(trained_translator, tmp_path)
