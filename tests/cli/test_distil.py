"""`keras-vanilla distil`: from a teacher and lines to a trained student."""

import argparse

import pytest

from keras_vanilla import bulk
from keras_vanilla.cli import distil as distil_command
from keras_vanilla.cli import main, train
from keras_vanilla.training import run
from keras_vanilla.training.run import TrainingRun
from keras_vanilla.translation import About, Translator


@pytest.fixture
def lines(tmp_path, unseen_sentences):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in unseen_sentences[:12]))
    return path


@pytest.fixture
def called(monkeypatch, tmp_path):
    """What is translated and trained on, without a model."""
    calls = []

    def translate_shards(*arguments, progress, **settings):
        calls.append((*arguments, settings))
        return 12, 0

    monkeypatch.setattr(bulk, "translate_shards", translate_shards)
    monkeypatch.setattr(distil_command, "_about_teacher", lambda _: About())
    monkeypatch.setattr(train, "start", lambda _, options: calls.append(options))
    return calls


def distil(teacher, lines, *options):
    given = ["--source", str(lines), "--output", str(lines.parent / "student")]
    return main(["distil", str(teacher), *given, *options])


@pytest.mark.parametrize(
    ("teacher", "options", "settings"),
    [
        ("a.keras", [], {"beam_size": 5}),
        ("a.keras", ["--beam-size", "1"], {"beam_size": 1}),
        ("a.tflite", [], {}),
        ("a.tflite", ["--beam-size", "4"], {"beam_size": 4}),  # the library refuses
    ],
)
def test_teacher_gets_a_beam_size_if_it_takes_one(
    teacher, options, settings, lines, called, tmp_path
):
    folder = str(tmp_path / "said")
    assert distil(teacher, lines, *options, "--translations", folder) == 0
    (model, sources, output, received), trained = called
    assert (model, sources, str(output)) == (teacher, [str(lines)], folder)
    assert received == settings
    assert trained.target == [str(tmp_path / "said/lines.txt")]


def test_student_has_the_languages_of_its_teacher(
    lines, called, trained_translator, tmp_path, monkeypatch
):
    monkeypatch.undo()
    about = About(name="Teacher", source_language="en", target_language="nl")
    path = tmp_path / "teacher.keras"
    trained_translator.replace(about=about).save(path)
    options = argparse.Namespace(teacher=str(path))
    told = distil_command._about_teacher(options)
    assert told == About(source_language="en", target_language="nl")


@pytest.mark.full
def test_student_is_trained_on_translations_of_its_teacher(
    lines, trained_file, trained_translator, tmp_path, monkeypatch, capfd
):
    runs = []

    class RecordedRun(TrainingRun):
        def __init__(self, config, folder, corpus, validation, **given):
            runs.append((config, corpus))
            super().__init__(config, folder, corpus, validation, **given)

    load = Translator.load
    monkeypatch.setattr(  # the teacher is not compiled again
        Translator,
        "load",
        lambda path: trained_translator if path == str(trained_file) else load(path),
    )
    monkeypatch.setattr(run, "TrainingRun", RecordedRun)
    options = "--preset tiny --epochs 1 --vocabulary-size 290".split()
    assert distil(trained_file, lines, *options) == 0
    assert "12 lines of the teacher are in" in capfd.readouterr().err
    said = (tmp_path / "student-translations/lines.txt").read_text().splitlines()
    sources = lines.read_text().splitlines()
    assert said == trained_translator.translate(sources, beam_size=5)
    ((config, corpus),) = runs
    assert (config.preset, config.epochs) == ("tiny", 1)
    assert (list(corpus.sources), list(corpus.targets)) == (sources, said)
    assert Translator.load(tmp_path / "student/translator.keras").model.d_model
    assert distil(trained_file, lines, *options) == 1
    assert "finished" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "huge"], "`preset` must be one of"),
        (["--validation-source", "a"], "must be given together"),
        (["--source-language", "German"], "BCP-47 tag"),
        (["--example", "a", "--no-examples"], "--example or --no-examples, not both"),
    ],
)
def test_options_are_checked_before_anything_is_translated(
    options, message, lines, called, capfd
):
    assert distil("a.keras", lines, *options) == 1
    assert message in capfd.readouterr().err and not called


def test_foreign_folder_is_refused_before_anything_is_translated(lines, called, capfd):
    (lines.parent / "student").mkdir()
    (lines.parent / "student/thesis.txt").write_text("mine")
    assert distil("a.keras", lines) == 1
    assert "student" in capfd.readouterr().err and not called
