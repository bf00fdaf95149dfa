"""A `.keras` file that is damaged, foreign or a bomb is one sentence, and soon.

And one whose weights are rounded is small, and loads as any other.
"""

import re
import time
import zipfile

import keras
import numpy as np
import pytest

from keras_vanilla import Translator
from keras_vanilla.translation.archive import rewrite_archive

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


def replaced(pattern, by):
    return lambda content: re.sub(pattern, by, content)


@pytest.mark.parametrize(
    "part, change, message",
    [
        ("assets/source.model", left_out, "it has no tokenizer, assets/source.model"),
        ("assets/source.model", shorter, "`source_model` is not a SentencePiece model"),
        ("config.json", left_out, "not a Keras archive: it has no config.json"),
        ("config.json", shorter, "cannot be read as a translator: "),
        ("config.json", replaced(b"special_ids", b"special"), "no 'special_ids'"),
        (
            "config.json",
            replaced(rb'"d_ff": \d+', b'"d_ff": 64'),
            "not be loaded.*expec",
        ),
        (  # refused before one is built
            "config.json",
            replaced(rb'(num_encoder_layers": )\d+', rb"\g<1>10000000"),
            "x.keras .*`num_encoder_layers` must be .* to 1000. Received: 10000000",
        ),
        ("model.weights.h5", left_out, NO_WEIGHTS),
        ("model.weights.h5", shorter, "cannot be read as a translator: .*truncated"),
    ],
)
def test_damaged_archive_is_one_sentence(trained_file, tmp_path, part, change, message):
    path = changed(trained_file, tmp_path / "x.keras", part, change)
    with pytest.raises(ValueError, match=message) as refused:
        Translator.load(path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "part, count, message",
    [
        ("config.json", 17_000_000, "its config.json has 17[0-9,]{8} bytes"),
        (
            "assets/source.model",
            100_000_000,
            "parts would unpack to 10[0-9,]{8,} bytes",
        ),
        # together; each is below the limit of the whole
        (None, 10_000_000, r"its 2\d parts would unpack to 20[0-9,]{8,} bytes"),
    ],
)
def test_archive_that_unpacks_to_far_more_is_not_read(
    trained_file, tmp_path, monkeypatch, part, count, message
):
    def inflated(content):
        return content + b" " * count

    path = changed(trained_file, tmp_path / "x.keras", part, inflated)
    if part is None:
        with zipfile.ZipFile(path, "a", 8) as archive:
            for number in range(20):
                archive.writestr(f"assets/{number}", b" " * count)
    assert path.stat().st_size < 2_000_000
    monkeypatch.setattr(keras.saving, "load_model", lambda *_: pytest.fail("read"))
    with pytest.raises(ValueError, match=message):
        Translator.load(path)


@pytest.mark.full
def test_file_in_int8_is_small_and_close(
    trained_translator, unseen_sentences, tmp_path
):
    whole, small = tmp_path / "whole.keras", tmp_path / "small.keras"
    trained_translator.save(whole)
    trained_translator.save(small, quantize="int8")
    tokenizer = len(trained_translator.tokenizer.source_model)
    weights = whole.stat().st_size - tokenizer
    assert small.stat().st_size - tokenizer < 0.35 * weights  # small matrices, in h5
    loaded = Translator.load(small)
    for old, new in zip(
        trained_translator.model.weights, loaded.model.weights, strict=True
    ):
        old, new = np.asarray(old), np.asarray(new)
        if old.ndim < 2:
            np.testing.assert_array_equal(new, old)
            continue
        step = np.diff(np.unique(new)).min()
        assert len(np.unique(new)) > 40 or old.size < 100
        allowed = np.where(np.abs(old) < 63.4 * step, 0.5, 1) * step
        assert (np.abs(new - old) <= allowed * 1.001).all()
    texts = unseen_sentences[:40]
    both = loaded.translate(texts), trained_translator.translate(texts)
    assert sum(new == old for new, old in zip(*both, strict=True)) > 30


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_bytes_of_a_translator_do_not_depend_on_the_time(
    trained_file, tmp_path, quantize
):
    paths = tmp_path / "a.keras", tmp_path / "b.keras"
    translator = Translator.load(trained_file)
    for path in paths:
        translator.save(path, quantize=quantize)
        time.sleep(2.1 - time.time() % 2)  # a zip has even seconds, HDF5 seconds
    assert paths[0].read_bytes() == paths[1].read_bytes()
    keras.saving.KerasFileEditor(str(paths[0])).summary()  # it needs a date


@pytest.mark.parametrize(
    "values",
    [
        np.float32([[300.0, 1.0]]),  # too far apart, and too large
        np.zeros((3, 4), "float32"),
        np.arange(-126, 127, dtype="float32")[None] * 2.0**-20,
        np.full((2, 2), 63.6 * 2.0**-9, "float32"),
    ],
)
def test_int8_keeps_every_matrix(values, tmp_path):
    layer = keras.Sequential([keras.layers.Dense(values.shape[1], use_bias=False)])
    layer.build((None, values.shape[0]))
    layer.set_weights([values])
    layer.save(tmp_path / "x.keras")
    rewrite_archive(tmp_path / "x.keras", rounds=True)
    (loaded,) = keras.saving.load_model(tmp_path / "x.keras").get_weights()
    np.testing.assert_allclose(loaded, values, rtol=0, atol=values.std() / 10 + 1e-3)


def test_rounding_twice_is_rounding_once(tmp_path):
    # Deviations just below a power of two, which rounding raises above it.
    random = np.random.default_rng(0)
    matrices = [random.normal(size=(40, 40)).astype("float32") for _ in range(20)]
    matrices = [20 * 2.0**-9 / matrix.std() * matrix for matrix in matrices]
    path = tmp_path / "x.keras"
    model = keras.Sequential([keras.Input((40,))])
    for _ in matrices:
        model.add(keras.layers.Dense(40, use_bias=False))
    model.set_weights([(1 - 1e-6) * matrix for matrix in matrices])
    model.save(path)
    rewrite_archive(path, rounds=True)
    rounded = keras.saving.load_model(path)
    rounded.save(path)
    rewrite_archive(path, rounds=True)
    for once, twice in zip(
        rounded.get_weights(), keras.saving.load_model(path).get_weights(), strict=True
    ):
        np.testing.assert_array_equal(twice, once)
