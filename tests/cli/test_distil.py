"""`keras-vanilla distil`: from a teacher and lines to a trained student."""

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


@pytest.mark.full
def test_student_is_trained_on_translations_of_its_teacher(
    lines, trained_translator, tmp_path, monkeypatch, capfd
):
    runs, teacher = [], tmp_path / "teacher.keras"

    class RecordedRun(TrainingRun):
        def __init__(self, config, folder, corpus, validation, **given):
            runs.append((config, corpus))
            super().__init__(config, folder, corpus, validation, **given)

    monkeypatch.setattr(run, "TrainingRun", RecordedRun)
    about = About(name="Teacher", source_language="en", target_language="nl")
    trained_translator.replace(about=about).save(teacher)
    options = "--preset tiny --epochs 1 --vocabulary-size 290".split()
    assert distil(teacher, lines, *options) == 0
    assert "12 lines of the teacher are in" in capfd.readouterr().err
    said = (tmp_path / "student-translations/lines.txt").read_text().splitlines()
    sources = lines.read_text().splitlines()
    assert said == trained_translator.translate(sources, beam_size=5)
    ((config, corpus),) = runs
    assert (config.preset, config.epochs) == ("tiny", 1)
    assert (list(corpus.sources), list(corpus.targets)) == (sources, said)
    student = Translator.load(tmp_path / "student/translator.keras").about
    assert (student.name, student.source_language) == (None, "en")
    assert distil(teacher, lines, *options) == 1
    assert "finished" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "huge"], "`preset` must be one of"),
        (["--validation-source", "a"], "must be given together"),
        (["--example", "a", "--no-examples"], "--example or --no-examples, not both"),
        ([], "student"),  # a folder of somebody else's
    ],
)
def test_options_are_checked_before_translation(options, message, lines, called, capfd):
    if not options:
        (lines.parent / "student").mkdir()
        (lines.parent / "student/thesis.txt").write_text("mine")
    assert distil("a.keras", lines, *options) == 1
    assert message in capfd.readouterr().err and not called
