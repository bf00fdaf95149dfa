"""Files of a Marian tokenizer that are refused."""

import json
import shutil
from pathlib import Path

import peer_models
import pytest
from marian_texts import (
    TEXTS,
    Reference,
    learn_models,
    tokens_of,
    write_files,
    write_json,
    write_vocabulary,
)

from keras_vanilla.interop.marian_tokenizer import tokenizer_from_marian


@pytest.fixture(scope="module")
def models():
    return learn_models()


@pytest.fixture(scope="module")
def whole(models, tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("marian") / "whole", models)


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of the folder, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@pytest.mark.parametrize(
    "name", ["vocab.json", "source.spm", "target.spm", "target_vocab.json"]
)
def test_missing_file_is_named(models, tmp_path, name):
    folder = write_files(tmp_path / "x", models, "separate")
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"There is no file .*{name}"):
        tokenizer_from_marian(folder)


def without(token):
    def change(ids):
        left = sorted(set(ids) - {token}, key=ids.get)
        return {token: id_ for id_, token in enumerate(left)}

    return change


def added(id_, token):
    return lambda _: {"added_tokens_decoder": {str(id_): {"content": token}}}


FILES = {  # -> changes of their content, and the error
    "vocab.json": [
        (lambda ids: [*ids], "vocab.json must hold a JSON object. Received: list"),
        (lambda ids: ids | {"x": 5000}, "to the ids 0 to .* Received: 'x': 5000"),
        (lambda ids: ids | {"the": -1}, "to the ids 0 to .* Received: 'the': -1"),
        (lambda ids: ids | {"the": 1.0}, "to the ids 0 to .* Received: 'the': 1.0"),
        (lambda ids: ids | {"": len(ids)}, "to the ids 0 to .* Received: '': "),
        (lambda ids: ids | {"\ud800": len(ids)}, r"Received: '\\ud800': "),
        (lambda ids: ids | {"x": 7}, "each id once. Received: 7 a second .* for 'x'"),
        (without("<pad>"), "must have the token '<pad>'"),
        (without("</s>"), "must have the token '</s>'"),
        (without("<unk>"), "must have the token '<unk>'"),
    ],
    "tokenizer_config.json": [
        (lambda _: {"eos_token": "<end>"}, "no special tokens but .*: '<end>'"),
        (lambda _: {"pad_token": {"content": "<p>"}}, "special tokens but .*: '<p>'"),
        (lambda _: {"additional_special_tokens": ["<a>"]}, "tokens but .*: '<a>'"),
        (lambda _: {"sp_model_kwargs": {"alpha": 0.1}}, "but .*: {'alpha': 0.1}"),
        (added(9, ">>x<<"), "each id once. Received: 9 a second time, for '>>x<<'"),
        (added("x", ">>x<<"), "to the ids 0 to .* Received: '>>x<<': 'x'"),
    ],
    "added_tokens.json": [
        (
            lambda _: {">>x<<": 9},
            "each id once. Received: 9 a second time, for '>>x<<'",
        ),
        (lambda _: {"Zwolle": 10**4}, "the added token 'Zwolle', which .* cuts out of"),
    ],
}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [(name, *row) for name, rows in FILES.items() for row in rows],
)
def test_bad_file_is_refused(folder, name, change, message):
    path = folder / name
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, change(content))
    with pytest.raises(ValueError, match=message):
        tokenizer_from_marian(folder)


@pytest.mark.parametrize("content", [b"", b"\x0a\xff"])
def test_bytes_that_are_not_a_model_are_refused(folder, content):
    (folder / "target.spm").write_bytes(content)
    message = "target.spm must be a SentencePiece model .* bytes with none"
    with pytest.raises(ValueError, match=message):
        tokenizer_from_marian(folder)


def test_model_of_another_vocabulary_is_refused(folder):
    other = ["zwölf boxkämpfer jagen viktor quer über den großen sylter deich"] * 3
    model = peer_models.learn(other, vocab_size=45, hard_vocab_limit=False)
    (folder / "source.spm").write_bytes(model)
    message = r"source.spm and the vocabulary are .*: 1\d of 3\d pieces .*, '.+' first"
    with pytest.raises(ValueError, match=message):
        tokenizer_from_marian(folder)


def test_two_bpe_models_with_one_vocabulary_are_refused(tmp_path):
    """BPE merges unused pieces, which could change a segmentation."""
    models = learn_models(model_type="bpe")
    folder = write_files(tmp_path / "x", models)
    message = "source.spm must be a unigram model, .* tokens .* '.+' first.*type BPE"
    with pytest.raises(ValueError, match=message):
        tokenizer_from_marian(folder)


def test_one_bpe_model_gives_the_ids_of_the_tokens(tmp_path):
    _, model = learn_models(model_type="bpe")
    folder = write_files(tmp_path / "x", [model, model])
    tokenizer, reference = tokenizer_from_marian(folder), Reference(folder)
    assert tokenizer.encode(TEXTS) == [reference.encode(text) for text in TEXTS]


def test_decoder_starts_with_the_pad(folder):
    pad = tokenizer_from_marian(folder).pad_id
    message = rf"`decoder_start_token_id` .* pad, {pad}, .*source.spm. Received: 0"
    with pytest.raises(ValueError, match=message):
        tokenizer_from_marian(folder, start_id=0)


def test_configuration_may_be_absent_or_say_the_usual(folder):
    expected = tokenizer_from_marian(folder).encode(TEXTS)
    path = folder / "tokenizer_config.json"
    path.unlink()
    assert tokenizer_from_marian(folder).encode(TEXTS) == expected
    added = {str(n): {"content": token} for n, token in enumerate(["</s>", "<unk>"])}
    usual = {"eos_token": "</s>", "added_tokens_decoder": added, "sp_model_kwargs": {}}
    write_json(path, usual)
    assert tokenizer_from_marian(folder).encode(TEXTS) == expected


def test_clean_up_of_translations_is_left_out_with_a_warning(folder):
    write_json(folder / "tokenizer_config.json", {"clean_up_tokenization_spaces": True})
    with pytest.warns(UserWarning, match="clean_up_tokenization_spaces.*left as they"):
        tokenizer_from_marian(folder)


def test_special_tokens_must_have_the_same_ids_on_both_sides(models, tmp_path):
    folder = write_files(tmp_path / "x", models, "separate")
    tokens = [*tokens_of(models[1])[:-1], *map(str, range(99)), "<pad>"]
    write_vocabulary(folder / "target_vocab.json", tokens)
    message = "special tokens of .*target_vocab.json must have the ids"
    with pytest.raises(ValueError, match=message):
        tokenizer_from_marian(folder)
