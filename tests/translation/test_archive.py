"""A `.keras` file that is damaged, foreign or a bomb is one sentence, and soon."""

import re
import zipfile

import keras
import pytest

from keras_vanilla import Translator

NO_WEIGHTS = "model.weights.h5 or model.weights.npz"


def changed(original, path, part, change):
    """An archive whose one part is changed, or left out where that gives None."""
    with zipfile.ZipFile(original) as old, zipfile.ZipFile(path, "w", 8) as new:
        for name in old.namelist():
            content = old.read(name)
            content = change(content) if name == part else content
            if content is not None:
                new.writestr(name, content)
    return path


def left_out(content):
    return None


def shorter(content):
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    "part, change, message",
    [
        ("assets/source.model", left_out, "it has no tokenizer, assets/source.model"),
        ("assets/source.model", shorter, "`source_model` is not a SentencePiece model"),
        ("config.json", left_out, "not a Keras archive: it has no config.json"),
        ("config.json", shorter, "cannot be read as a translator: "),
        ("model.weights.h5", left_out, NO_WEIGHTS),
        ("model.weights.h5", shorter, "cannot be read as a translator: .*truncated"),
        (
            "config.json",
            lambda content: content.replace(b'"special_ids"', b'"special"'),
            "The configuration of a Translator has no 'special_ids'",
        ),
    ],
)
def test_a_damaged_archive_is_one_sentence(
    trained_file, tmp_path, part, change, message
):
    path = changed(trained_file, tmp_path / "x.keras", part, change)
    with pytest.raises(ValueError, match=message) as refused:
        Translator.load(path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_of_keras_s_two_lines_the_reason_is_shown(trained_file, tmp_path):
    def wider(content):
        return content.replace(b'"d_ff": 256', b'"d_ff": 128')

    path = changed(trained_file, tmp_path / "x.keras", "config.json", wider)
    with pytest.raises(ValueError, match="objects could not be loaded.*expect"):
        Translator.load(path)


@pytest.mark.parametrize("part", ["config.json", "assets/source.model"])
def test_a_part_that_unpacks_to_far_more_is_not_read(
    trained_file, tmp_path, monkeypatch, part
):
    def inflated(content):
        return content + b" " * (100_000_000 if "assets" in part else 17_000_000)

    path = changed(trained_file, tmp_path / "x.keras", part, inflated)
    assert path.stat().st_size < 2_000_000
    monkeypatch.setattr(keras.saving, "load_model", lambda *_: pytest.fail("read"))
    counted = "its .* parts would unpack to" if "assets" in part else f"its {part} has"
    with pytest.raises(ValueError, match=f"{counted} 1[0-9,]{{8,}} bytes"):
        Translator.load(path)


def test_many_parts_that_together_unpack_to_far_more_are_not_read(
    trained_file, tmp_path, monkeypatch
):
    path = tmp_path / "x.keras"
    path.write_bytes(trained_file.read_bytes())
    with zipfile.ZipFile(path, "a", 8) as archive:
        for number in range(20):  # each is below the limit of the whole
            archive.writestr(f"assets/{number}", b" " * 10_000_000)
    monkeypatch.setattr(keras.saving, "load_model", lambda *_: pytest.fail("read"))
    with pytest.raises(ValueError, match=r"its 2\d parts would unpack to 20"):
        Translator.load(path)


def test_millions_of_layers_are_refused_before_one_is_built(trained_file, tmp_path):
    def deeper(content):
        depth = rb'"num_encoder_layers": \d+'
        return re.sub(depth, b'"num_encoder_layers": 10000000', content)

    path = changed(trained_file, tmp_path / "x.keras", "config.json", deeper)
    message = "x.keras .*`num_encoder_layers` must be .* to 1000. Received: 10000000"
    with pytest.raises(ValueError, match=message) as refused:
        Translator.load(path)
    assert "\n" not in str(refused.value)


def test_an_exported_file_is_called_by_its_name(tmp_path):
    path = tmp_path / "translator.tflite"
    path.write_bytes(b"\x1c\0\0\0TFL3 and more")
    with pytest.raises(ValueError, match="an exported .tflite file. Expected"):
        Translator.load(path)
