"""`keras-vanilla convert`: other formats in and out, by their names alone."""

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


def test_out_and_in_again(
    marian, trained_translator, unseen_sentences, tmp_path, capfd
):
    assert convert.FORMATS == tuple(FORMATS)
    converted = tmp_path / "new" / "again.keras"
    about = ["--name", "Again", "--example", "it's red"]
    assert main(["convert", str(marian), str(converted), *about]) == 0
    out = capfd.readouterr().out
    assert "again.keras is written" in out and "keras-vanilla export" in out
    assert f'keras-vanilla translate {converted} "it\'s red"' in out
    again = Translator.load(converted)
    assert again.about == About(name="Again", examples=["it's red"])
    lines = unseen_sentences[:20]
    ids = again.encode(lines)
    assert ids == trained_translator.encode(lines)
    np.testing.assert_array_equal(again.search(ids), trained_translator.search(ids))


@pytest.mark.full
def test_ctranslate2_and_back(trained_file, tmp_path):
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


def test_keras_file_in_int8(trained_file, tmp_path):
    small = tmp_path / "small.keras"
    assert main(["convert", str(trained_file), str(small), "--quantize", "int8"]) == 0
    assert small.stat().st_size < 0.5 * trained_file.stat().st_size
    Translator.load(small)


def test_refusals_write_nothing(trained_file, tmp_path, capfd):
    text, output = tmp_path / "notes.txt", tmp_path / "new.keras"
    text.write_text("not a model")
    for arguments, message in (
        ([text, output], "none of the supported formats"),
        ([tmp_path / "nothing", output], "no file or folder"),
        ([trained_file, tmp_path / "folder"], "give its --format"),
        ([trained_file, tmp_path / "a", "--format", "keras"], "ends with .keras"),
        ([trained_file, text], "exists already"),
        ([trained_file, output, "--quantize", "float16"], "one of None, 'int8'"),
        (
            [trained_file, tmp_path / "a", "--format", "marian", "--name", "Toy"],
            "--name: only a .keras file keeps it. Received: ",
        ),
        (
            [trained_file, tmp_path / "a", "--format", "marian", "--quantize", "int8"],
            "--quantize is for .keras files and --format ctranslate2",
        ),
    ):
        assert main(["convert", *map(str, arguments)]) == 1
        out, err = capfd.readouterr()
        assert out == "" and message in err.strip().splitlines()[-1]
    assert list(tmp_path.iterdir()) == [text]
