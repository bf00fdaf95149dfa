"""`keras-vanilla convert`: other formats in and out, by their names alone."""

import json

import numpy as np
import pytest

from keras_vanilla.cli import convert, main
from keras_vanilla.interop.formats import FORMATS
from keras_vanilla.translation import About, Translator


@pytest.fixture(scope="module")
def marian(trained_file, tmp_path_factory):
    """Our translator as a folder of Hugging Face's Marian models."""
    folder = tmp_path_factory.mktemp("converted") / "marian"
    assert main(["convert", str(trained_file), str(folder), "--format", "marian"]) == 0
    return folder


def fails(capfd, *arguments):
    assert main(["convert", *map(str, arguments)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    return err.strip().splitlines()[-1]


def test_the_formats_are_those_of_the_library():
    assert convert.FORMATS == tuple(FORMATS)


def test_out_and_in_again(
    marian, trained_translator, unseen_sentences, tmp_path, capfd
):
    converted = tmp_path / "new" / "again.keras"
    about = ["--name", "Again", "--example", "it's red"]
    assert main(["convert", str(marian), str(converted), *about]) == 0
    out = capfd.readouterr().out
    assert "again.keras is written" in out and "keras-vanilla export" in out
    assert f'keras-vanilla translate {converted} "it\'s red"' in out
    again = Translator.load(converted)
    assert again.about == About(name="Again", examples=["it's red"])
    lines = unseen_sentences[:20]
    assert again.encode(lines) == trained_translator.encode(lines)
    np.testing.assert_array_equal(
        again.search(again.encode(lines)),
        trained_translator.search(trained_translator.encode(lines)),
    )


def test_other_formats_keep_no_description(trained_file, tmp_path, capfd):
    folder = tmp_path / "marian"
    options = ["--format", "marian", "--source-language", "de"]
    error = fails(capfd, trained_file, folder, *options)
    assert (
        f"--source-language: only a .keras file keeps it. Received: {folder}" in error
    )
    assert not folder.exists()


@pytest.mark.full
def test_ctranslate2_and_back(trained_file, tmp_path, capfd):
    folder, again = tmp_path / "server", tmp_path / "again.keras"
    command = ["convert", str(trained_file), str(folder), "--format", "ctranslate2"]
    assert main(command) == 0 and main(["convert", str(folder), str(again)]) == 0
    expected = Translator.load(trained_file).model.get_weights()
    received = Translator.load(again).model.get_weights()
    assert {each.shape for each in expected} <= {each.shape for each in received}
    small = [*command[:2], str(tmp_path / "small"), *command[3:], "--quantize", "int8"]
    assert main(small) == 0
    sizes = [
        (path / "model.bin").stat().st_size for path in (tmp_path / "small", folder)
    ]
    assert sizes[0] < 0.4 * sizes[1]
    capfd.readouterr()
    options = ["--format", "marian", "--quantize", "int8"]
    error = fails(capfd, trained_file, tmp_path / "marian", *options)
    assert "--quantize is for .keras files and --format ctranslate2" in error


def test_a_keras_file_in_int8(trained_file, tmp_path, capfd):
    small = tmp_path / "small.keras"
    command = ["convert", str(trained_file), str(small), "--quantize"]
    assert main([*command, "int8"]) == 0
    assert small.stat().st_size < 0.5 * trained_file.stat().st_size
    Translator.load(small)
    capfd.readouterr()
    small.unlink()
    assert "one of None, 'int8'" in fails(capfd, *command[1:], "float16")
    assert not small.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model_type": "t5"}, "of the type 'marian'. Received: 't5'"),
        ({}, "of the type 'marian'. Received: None"),
        (["marian"], "must hold a JSON object. Received: list"),
    ],
)
def test_another_model_is_refused_and_nothing_is_written(
    content, message, tmp_path, capfd
):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(content))
    assert message in fails(capfd, folder, tmp_path / "new.keras")
    assert not (tmp_path / "new.keras").exists()


def test_what_is_no_model_is_refused(trained_file, tmp_path, capfd):
    (tmp_path / "notes.txt").write_text("not a model")
    output = tmp_path / "new.keras"
    error = fails(capfd, tmp_path / "notes.txt", output)
    assert "none of the supported formats" in error
    (tmp_path / "notes.txt").rename(tmp_path / "model.npz")
    error = fails(capfd, tmp_path / "model.npz", output)
    assert "removed in 0.8.0; keras_vanilla 0.7.0 reads it" in error
    (tmp_path / "model.npz").rename(tmp_path / "notes.txt")
    assert "no file or folder" in fails(capfd, tmp_path / "nothing", output)
    assert "give its --format" in fails(capfd, trained_file, tmp_path / "folder")
    wrong = fails(capfd, trained_file, tmp_path / "folder", "--format", "keras")
    assert "ends with .keras" in wrong
    assert "exists already" in fails(capfd, trained_file, tmp_path / "notes.txt")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes.txt"]
