"""The command line as a person meets it: real files, and what goes wrong with them."""

import errno
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sentencepiece
import tensorflow as tf
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator
from keras_vanilla.cli import main
from keras_vanilla.training.run import TrainingRun
from keras_vanilla.translation import batch_translation
from keras_vanilla.translation.batch_translation import Hypothesis


@pytest.fixture(scope="module")
def model(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "translator.keras"
    trained_translator.save(path)
    return str(path)


@pytest.fixture(scope="module")
def untrained(small_translator, tmp_path_factory):
    """A small model that knows nothing yet, with the same vocabulary."""
    path = tmp_path_factory.mktemp("untrained") / "translator.keras"
    small_translator.save(path)
    return str(path)


@pytest.fixture
def loaded_model(model, trained_translator, monkeypatch):
    """The same model, which is not loaded and compiled again."""
    monkeypatch.setattr(Translator, "load", lambda path: trained_translator)
    return model


@pytest.fixture(autouse=True)
def newcomer(monkeypatch):
    """TensorFlow's log settings as they are for somebody who set none."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)


@pytest.fixture
def files(tmp_path):
    """Two files of parallel text."""
    paths = tmp_path / "train.en", tmp_path / "train.nl"
    sources = english_sentences(60, seed=4)
    paths[0].write_text("".join(f"{line}\n" for line in sources))
    paths[1].write_text("".join(f"{dutch(line)}\n" for line in sources))
    return [str(path) for path in paths]


@pytest.fixture
def few_lines(files):
    """The first lines of these files."""
    for path in map(Path, files):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    return files


def fails(capfd, *arguments):
    """Runs a command that must fail; returns its last line, the error's sentence."""
    assert main([str(argument) for argument in arguments]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.strip().splitlines()
    assert all(line.startswith("keras-vanilla: ") for line in lines)  # no traceback
    return lines[-1]


def train(files, *more):
    return ["train", "--source", files[0], "--target", files[1], *map(str, more)]


def run_as_program(*arguments, **settings):
    """The console script, in a process of its own."""
    program = "import sys; from keras_vanilla_cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def test_translate_from_arguments(model, trained_translator, capfd):
    texts = ["one two three", "small house"]
    assert main(["translate", model, *texts]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == trained_translator.translate(texts)
    assert err == ""


@pytest.fixture
def pipe():
    """The path of a pipe, and a function that writes the whole of it."""
    if not os.path.isdir("/dev/fd"):
        pytest.skip("needs paths of pipes")
    reader, writer = os.pipe()

    def write(data):
        os.write(writer, data)
        os.close(writer)

    yield f"/dev/fd/{reader}", write
    os.close(reader)


@pytest.mark.parametrize(
    ("broken", "message"),
    [(b"zero " * 100, "Text 3 has"), (b"\xe9", ", line 3: byte 0xe9 at column 1")],
)
def test_lines_before_broken_line_of_pipe_are_translated(
    broken, message, loaded_model, monkeypatch, pipe, capfd
):
    monkeypatch.setattr(batch_translation, "WINDOW", 2)
    path, write = pipe
    write(b"one\ntwo\n" + broken)
    assert main(["translate", loaded_model, "--input", path]) == 1
    out, err = capfd.readouterr()
    assert out == "een\ntwee\n" and message in err


@pytest.mark.full
def test_slow_pipe_is_answered_line_by_line(model):
    program = run_as_program("translate", model, stdin=subprocess.PIPE)
    for text, translation in (("one two", "twee een"), ("red tree", "boom rood")):
        program.stdin.write(text + "\n")
        program.stdin.flush()
        assert program.stdout.readline() == translation + "\n"
    out, err = program.communicate("small")
    assert (program.returncode, out) == (0, "klein\n")
    # Progress alone: TensorFlow's messages at start-up are hidden.
    lines = err.splitlines()  # one in every 30 seconds, and the last
    assert lines and all(line.startswith("Translating: ") for line in lines)
    assert lines[-1].startswith("Translating: 3 lines")


def test_full_disk_is_one_sentence(loaded_model, tmp_path, monkeypatch, capfd):
    output = tmp_path / "out.txt"

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    error = fails(capfd, "translate", loaded_model, "one", "--output", output)
    assert error == f"keras-vanilla: {output}: No space left on device."
    assert list(tmp_path.iterdir()) == []


def test_exhausted_memory_has_remedy(loaded_model, monkeypatch, capfd):
    def exhausted(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when\n[[allocating]]")

    monkeypatch.setattr(Translator, "stream", exhausted)
    error = fails(capfd, "translate", loaded_model, "one")
    assert "not enough memory" in error and "--beam-size" in error


def test_file_is_translated_into_new_folder(
    loaded_model, trained_translator, unseen_sentences, tmp_path
):
    texts = [*unseen_sentences[:70], "", *unseen_sentences[70:80]]
    source, target = tmp_path / "in.txt.gz", tmp_path / "new" / "folder" / "out.txt"
    source.write_bytes(gzip.compress("\n".join(texts).encode()))
    command = ["translate", loaded_model, "--input", str(source)]
    assert main([*command, "--output", str(target)]) == 0
    lines = target.read_text().split("\n")
    assert lines == [*trained_translator.translate(texts), ""]
    assert lines[70] == ""


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {}),
        ("--beam-size 3 --n-best 2", {"beam_size": 3, "n_best": 2}),
        ("--beam-size 2 --length-penalty 1", {"beam_size": 2, "length_penalty": 1.0}),
        ("--target-prefix zes", {"target_prefix": ["zes", "zes"]}),
        ("--no-repeat-ngram-size 1", {"no_repeat_ngram_size": 1}),
        ("--max-length 9 --no-loops", {"max_length": 9, "no_loops": True}),
        ("--on-too-long split", {"on_too_long": "split"}),
        ("--copy url,number", {"copy": ["url", "number"]}),
    ],
)
def test_options_reach_translator(options, settings, loaded_model, monkeypatch):
    received = []

    def stream(self, texts, **given):
        received.append((texts, given))
        return iter([[Hypothesis("a", -1.0, [], True)] for _ in texts])

    monkeypatch.setattr(Translator, "stream", stream)
    texts = ["one two three", "small house"]
    assert main(["translate", loaded_model, *texts, *options.split()]) == 0
    expected = {"first_number": 1, "progress": None, **settings}
    assert received == [(texts, expected)]


def test_terms_of_file(loaded_model, trained_translator, tmp_path, capfd):
    terms, texts = tmp_path / "terms.tsv", ["one two three", "two 12"]
    terms.write_text("two\tgroot\n\nthree\t" + "steen " * 70 + "\n")
    command = ["translate", loaded_model, *texts, "--copy", "url,number", "--json"]
    assert main([*command, "--terms", str(terms)]) == 0
    out, err = capfd.readouterr()
    assert "1 of 2 translations lack a term: texts 1; the first lacks 'steen" in err
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        assert "groot" in row["translation"].split()
    assert "12" in rows[1]["translation"].split()
    assert rows[0]["unmet"] == [("steen " * 70).strip()] and "unmet" not in rows[1]


@pytest.mark.full
def test_alignments_follow_translations(loaded_model, trained_translator, capfd):
    texts = ["one two three", "small house", ""]
    endless = "one two three four five six seven eight nine"
    command = ["translate", loaded_model, *texts, endless, "--alignments"]
    assert main([*command, "--max-length", "8"]) == 0
    out, err = capfd.readouterr()
    *rows, cut = [line.split("\t") for line in out.splitlines()]
    links = trained_translator.align(texts, [text for text, _ in rows])
    assert [row[1] for row in rows] == [
        " ".join(f"{source}-{target}" for source, target in of_row) for of_row in links
    ]
    assert rows[0][1] == "2-0 1-1 0-2"
    assert "reached their longest length without an end: texts 4" in err
    assert len(cut[1].split()) == len(cut[0].split())


def test_tab_and_newline_break_no_line(
    loaded_model, trained_translator, monkeypatch, capfd
):
    odd = [[Hypothesis("a\tb\nc", -1.0, [], True)], [Hypothesis("d", -2.0, [], True)]]
    monkeypatch.setattr(Translator, "stream", lambda *_, **__: iter(odd))
    assert main(["translate", loaded_model, "x", "y", "--n-best", "1"]) == 0
    assert capfd.readouterr().out == "1\t-1.0000\ta b c\n2\t-2.0000\td\n"


def test_evaluate_reads_files_and_tables(loaded_model, files, tmp_path, capfd):
    sides = [Path(path).read_text().splitlines() for path in files]
    rows = "".join(f"{s}\t{t}\n" for s, t in zip(*sides, strict=True))
    (tmp_path / "pairs.tsv").write_text(rows)
    outputs, table = [], ["--pairs", str(tmp_path / "pairs.tsv")]
    of_files = ["--source", files[0], "--target", files[1]]  # also --reference
    for corpus in (of_files, table, [*table, "--columns", "1", "2"]):
        assert main(["evaluate", loaded_model, *corpus]) == 0
        outputs.append(capfd.readouterr().out)
    (out,) = set(outputs)
    assert out.startswith("BLEU ") and "(60 lines)" in out and "tok:13a" in out
    assert out.count("worst, line ") == out.count("best, line ") == 3
    options = "--lowercase --tokenized --language nl --sentences 1 --json".split()
    assert main(["evaluate", loaded_model, *of_files, *options]) == 0
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert err == "" and result["lines"] == 60 and result["unfinished"] == []
    assert "case:lc" in result["signature"] and "moses:nl" in result["signature"]
    assert "nc:6" in result["chrf_signature"] and result["left_out"] == {}
    assert len(result["best"]) == len(result["worst"]) == 1


def test_evaluate_leaves_out_long_sources(loaded_model, files, capfd):
    Path(files[0]).write_text("one\n" + "zero " * 100 + "\ntwo\n")
    Path(files[1]).write_text("een\nnul\ntwee\n")
    command = ["evaluate", loaded_model, "--source", files[0], "--reference", files[1]]
    assert main(command) == 0
    out, err = capfd.readouterr()
    assert "(2 lines)" in out and "1 pairs are left out" in out
    assert "1 of 3 sources" in err and err.endswith("are left out: lines 2.\n")
    error = fails(capfd, *command, "--on-too-long", "refuse")
    assert "Text 2 has" in error


@pytest.mark.full
@pytest.mark.parametrize("name", ["translator.tflite", "saved_model"])
def test_export_and_verify(
    loaded_model, trained_translator, few_lines, tmp_path, capfd, name
):
    model = loaded_model
    exported = str(tmp_path / "missing" / name)
    settings = ["--quantize", "none"] if name.endswith(".tflite") else []
    assert main(["export", model, exported, *settings]) == 0
    assert main(["verify", model, exported, "--source", few_lines[0]]) == 0
    out, err = capfd.readouterr()
    if settings:  # a file; its steps are announced, since each takes a while
        steps = [line for line in err.splitlines() if name in line]
        assert steps == [
            f"keras-vanilla: Converting the model to {name}.",
            f"keras-vanilla: Comparing {name} with Keras.",
        ]
    card = f", and its model card, {Path(exported).with_suffix('.md')}"
    assert f"{exported} is written{card if settings else ''}.\n" in out
    assert f"keras-vanilla verify {model} {exported}" in out
    assert f'keras-vanilla translate {exported} "..."' in out
    assert "9 of 9 sentences have Keras's ids" in out
    assert ("model card" in out) == bool(settings)
    verify = ["verify", model, exported, "--source", few_lines[0], "--json"]
    assert main([*verify, "--reference", few_lines[1]]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["passed"] and report["equal"] == report["sentences"] == 9

    texts = Path(few_lines[0]).read_text().splitlines()[:5]
    assert main(["translate", exported, *texts]) == 0
    expected = trained_translator.translate(texts)
    assert capfd.readouterr().out.splitlines() == expected
    corpus = ["--source", few_lines[0], "--reference", few_lines[1], "--json"]
    scores = []
    for each in (model, exported):
        assert main(["evaluate", each, *corpus]) == 0
        scores.append(json.loads(capfd.readouterr().out))
    assert scores[0] == scores[1]
    if name.endswith(".tflite"):
        digest = hashlib.sha256(Path(exported).read_bytes()).hexdigest()
        assert f"SHA-256 of {exported}: {digest}\n" in out
        assert f"| `{digest}` |" in Path(exported).with_suffix(".md").read_text()


@pytest.mark.full
def test_verify_fails_for_other_model(
    text_file, trained_translator, few_lines, tmp_path, capfd
):
    path, other = tmp_path / "other.keras", trained_translator.copy()
    weights = other.model.get_weights()
    other.model.set_weights([weights[0][::-1], *weights[1:]])
    other.save(path)
    assert main(["verify", str(path), str(text_file), "--source", few_lines[0]]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    expected = "If the model was trained since the export, export it again."
    assert f"translates differently from {path}. {expected}" in last


@pytest.mark.full
def test_training_reports_lines_left_out(untrained, files, tmp_path, capfd):
    validation = []
    for side, path in zip(("source", "target"), files, strict=True):
        validation += [f"--validation-{side}", shutil.copy(path, f"{path}-validation")]
    with open(files[0], "a") as source, open(files[1], "a") as target:
        source.write("\none two\n" + "zero " * 50 + "\n")
        target.write("nul\n \nnul\n")
    output = tmp_path / "out"
    command = train(files, "--output", output, "--from", untrained, "--epochs", 1)
    assert main([*command, *validation, "--max-tokens", "40", "--name", "Toy"]) == 0
    out, err = capfd.readouterr()
    translator = Translator.load(output / "translator.keras")
    assert translator.about.name == "Toy" and len(translator.about.examples) == 5
    example = translator.about.examples[0]
    assert f'keras-vanilla translate {output}/translator.keras "{example}"\n' in out
    for reported in (
        "epoch 1/1: loss",
        "tokens/s",
        "BLEU",
        "61 pairs: dropout",
        "2 pairs are left out, empty: lines 61, 62",
        "1 of 61 pairs are longer than 40 tokens and are left out: lines 63",
        "source sentence that the training text has too",
    ):
        assert reported in " ".join(err.split())
    assert "\r" not in err and "\x1b" not in err  # where there is no terminal
    lines = err.splitlines()
    assert sum(not line.startswith("Training: ") for line in lines) == 6


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_only_same_command_resumes_after_ctrl_c(untrained, files, tmp_path, capfd):
    output, epochs = tmp_path / "out", 12
    command = train(files, "--output", output, "--from", untrained, "--epochs", epochs)
    command += ["--max-tokens", "60"]
    program = run_as_program(*command)
    history = output / "history.csv"
    while program.poll() is None:
        if history.exists() and "\n1" in history.read_text():
            break
        time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=600)
    assert program.returncode == 130, err
    assert "Traceback" not in err
    assert f"translator so far is in {output}/last.keras" in err
    assert "started again, resumes" in err
    Translator.load(output / "last.keras")

    error = fails(capfd, *command, "--seed", "5")
    assert "unfinished training with other settings: seed was 0 and is 5" in error
    assert main(command) == 0
    assert "has a snapshot after step" in capfd.readouterr().err
    first = [line.split(",")[0] for line in history.read_text().split()]
    assert first == ["epoch", *map(str, range(epochs))]
    assert not (output / "snapshots").exists()
    assert "exists already" in fails(capfd, *command)


def test_missing_extra_is_named(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "num2words", None)
    error = fails(capfd, "quickstart", "--output", tmp_path / "out")
    assert 'pip install ".[demo]"' in error


@pytest.fixture
def runs(monkeypatch):
    """The trainings that were started, none of which has trained."""
    started = []

    def train(run):
        started.append(run)
        raise ValueError("This is enough.")

    monkeypatch.setattr(TrainingRun, "train", train)
    return started


def test_own_tokenizer(files, runs, tmp_path, capfd):
    (tmp_path / "text").write_text("".join(Path(file).read_text() for file in files))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"),
        model_prefix=str(tmp_path / "mine"),
        vocab_size=60,
        minloglevel=2,
    )
    command = train(files, "--output", tmp_path / "out", "--preset", "tiny")
    assert main([*command, "--tokenizer", str(tmp_path / "mine.model")]) == 1
    assert "60 pairs: dropout 0.2" in capfd.readouterr().err
    (run,) = runs
    assert run.tokenizer.source_model == (tmp_path / "mine.model").read_bytes()
    for more in (["--vocabulary-size", 70], ["--separate-vocabularies"]):
        command = train(files, "--output", tmp_path / "no", *more)
        error = fails(capfd, *command, "--tokenizer", tmp_path / "mine.model")
        assert "has its own vocabularies" in error
