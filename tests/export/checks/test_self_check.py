"""A file that is not right is not written, and the error says why."""

import numpy as np
import pytest
from described_file import LEAST

from keras_vanilla import _atomic_write, cli, export
from keras_vanilla._operators import Operators, current_operators
from keras_vanilla.export import to_tflite
from keras_vanilla.export.checks.verification import made_up_sentences
from keras_vanilla.export.metadata.description import Description

LIMITS = {"max_source_length": 9, "max_length": 9}
SMALL = {**LIMITS, "check": "structure"}


@pytest.fixture(scope="module")
def content(small_translator, tmp_path_factory):
    """What the conversion of the small translator gives."""
    made, convert = [], to_tflite.convert

    def recorded(*arguments):
        made.append(convert(*arguments))
        return made[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(to_tflite, "convert", recorded)
        path = tmp_path_factory.mktemp("small") / "x.tflite"
        export.tflite(small_translator, path, **SMALL)
    return made[0]


def refused(translator, folder, monkeypatch):
    """The error; without the check what the same conversion gave is written."""
    settings = {"quantize": None, **LIMITS}
    made, convert = [], to_tflite.convert

    def convert_once(*arguments):
        made.extend([] if made else [convert(*arguments)])
        return made[0]

    monkeypatch.setattr(to_tflite, "convert", convert_once)
    with pytest.raises(RuntimeError, match="The file is not written") as error:
        export.tflite(translator, folder / "x.tflite", **settings)
    assert not list(folder.iterdir())
    export.tflite(translator, folder / "x.tflite", check="structure", **settings)
    return str(error.value)


@pytest.mark.full
def test_endless_outputs_are_refused(endless_translator, tmp_path, monkeypatch):
    assert "outputs never end" in refused(endless_translator, tmp_path, monkeypatch)


@pytest.mark.full
def test_source_without_influence_is_refused(small_translator, tmp_path, monkeypatch):
    blind = small_translator.copy()
    for layer in blind.model.decoder_layers:
        values = layer.cross_attention.value_dense
        values.set_weights([0 * weight for weight in values.get_weights()])
    refusal = refused(blind, tmp_path, monkeypatch)
    assert "The source hardly matters" in refusal
    assert "give some of its own as `sample` (--sample FILE)" in refusal


@pytest.mark.full
def test_ids_unlike_keras_are_refused(small_translator, tmp_path, monkeypatch):
    convert = to_tflite.convert

    def convert_another(module, model, *settings):
        rng = np.random.default_rng(0)
        weights = model.get_weights()
        noise = [0.1 * w.std() * rng.standard_normal(w.shape) for w in weights]
        model.set_weights([w + n for w, n in zip(weights, noise, strict=True)])
        try:
            return convert(module, model, *settings)
        finally:
            model.set_weights(weights)

    monkeypatch.setattr(to_tflite, "convert", convert_another)
    assert "sentences differ by more than a near-tie" in refused(
        small_translator, tmp_path, monkeypatch
    )


@pytest.mark.full
def test_fault_of_structure_is_refused(
    small_translator, content, tmp_path, monkeypatch
):
    monkeypatch.setattr(to_tflite, "convert", lambda *_: content)
    monkeypatch.setattr(to_tflite, "structure_faults", lambda *_: ["It is too large."])
    with pytest.raises(RuntimeError, match="not written: It is too large."):
        export.tflite(small_translator, tmp_path / "x.tflite", check="structure")
    assert not list(tmp_path.iterdir())


def test_made_up_sentences_fill_the_limits(trained_translator):
    def made_up(max_bytes):
        limits = {"max_bytes": max_bytes, "max_source_tokens": 29}
        description = Description(**LEAST | limits)
        return made_up_sentences(trained_translator, description)

    texts = made_up(512)
    lengths = [len(ids) for ids in trained_translator.encode(texts)]
    assert texts[0] == "" and lengths[0] == 1 and lengths[1] in (28, 29)
    assert max(lengths) <= 29 and len(texts) == 42
    assert len(made_up(20)[1].encode()) > 10
    assert max(len(text.encode()) for text in made_up(20)) <= 20


@pytest.mark.full
def test_export_leaves_model_and_standard_output_alone(
    trained_translator, tmp_path, capfd
):
    model = trained_translator.model
    inputs = {
        "source_ids": np.array([[7, 8, 9, 3]]),
        "target_ids": np.array([[2, 5, 0]]),
    }
    before = np.asarray(model(inputs))

    path, settings = tmp_path / "x.tflite", {"data": "made up", "max_length": 30}
    sample = iter(["one", "two"])  # read once
    export.tflite(trained_translator, path, sample=sample, **settings)
    assert type(current_operators()) is Operators
    assert capfd.readouterr().out == ""
    np.testing.assert_array_equal(np.asarray(model(inputs)), before)
    config = export.ExportConfig.of(**settings)
    description = to_tflite.described(trained_translator, "x", config)
    assert export.read_description(path) == description
    assert "| made up |" in path.with_suffix(".md").read_text()


@pytest.mark.full
@pytest.mark.parametrize(
    "module, failing",
    [
        (_atomic_write, "_sync"),
        (to_tflite, "atomic_write_text"),
        (to_tflite, "model_card"),
    ],
    ids=["file", "card", "text of the card"],
)
def test_failure_leaves_nothing_that_blocks_retry(
    small_translator, content, tmp_path, monkeypatch, module, failing
):
    def fail(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(to_tflite, "convert", lambda *_: content)
    monkeypatch.setattr(module, failing, fail)
    with pytest.raises(OSError, match="the disk is full"):
        export.tflite(small_translator, tmp_path / "x.tflite", **SMALL)
    assert not list(tmp_path.iterdir())


@pytest.mark.full
@pytest.mark.parametrize(
    "settings",
    [
        {"max_length": 3, "beam_size": 3, "max_source_length": 2},
        {"beam_size": 30, "quantize": None, "check": "structure"},
    ],
    ids=str,
)
def test_correct_files_pass_their_own_check(trained_translator, tmp_path, settings):
    path = tmp_path / "x.tflite"
    export.tflite(trained_translator, path, **settings)
    assert export.read_description(path).beam_size == settings["beam_size"]


@pytest.mark.full
def test_file_written_during_export_is_kept(
    small_translator, content, tmp_path, monkeypatch
):
    def convert_slowly(*_):
        path.write_text("another export's")
        return content

    path = tmp_path / "x.tflite"
    monkeypatch.setattr(to_tflite, "convert", convert_slowly)
    with pytest.raises(FileExistsError, match="x.tflite exists already"):
        export.tflite(small_translator, path, **SMALL)
    assert path.read_text() == "another export's"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("mine"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to(path.with_name("nothing")),
    ],
    ids=["file", "folder", "broken link"],
)
def test_existing_path_is_never_written_over(trained_translator, tmp_path, make):
    path = tmp_path / "x.tflite"
    make(path)
    before = path.lstat()
    for write in (export.tflite, export.saved_model):
        with pytest.raises(FileExistsError, match="x.tflite exists already"):
            write(trained_translator, path)
    assert list(tmp_path.rglob("*")) == [path]
    assert path.lstat().st_mtime_ns == before.st_mtime_ns


def test_length_penalty_needs_beams(capfd, tmp_path):
    path = str(tmp_path / "x.tflite")
    assert cli.main(["export", "no.keras", path, "--length-penalty", "1"]) == 1
    message = "keras-vanilla: --length-penalty is for --beam-size above 1.\n"
    assert capfd.readouterr().err == message
