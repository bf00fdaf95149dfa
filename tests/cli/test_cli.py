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
from checks import randomize
from word_reversal import dutch, english_sentences

from keras_vanilla import Transformer, Translator
from keras_vanilla.cli import main
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.run import TrainingRun
from keras_vanilla.training.untrained import untrained as untrained_translator
from keras_vanilla.translation import batch_translation
from keras_vanilla.translation.batch_translation import Hypothesis


@pytest.fixture(scope="module")
def model(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "translator.keras"
    trained_translator.save(path)
    return str(path)


@pytest.fixture(scope="module")
def untrained(trained_translator, tmp_path_factory):
    """A small model that knows nothing yet, with the same vocabulary."""
    tokenizer = trained_translator.tokenizer
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "max_length": 60}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1, "dropout": 0.0}
    model = Transformer(tokenizer.vocabulary_size, **sizes, **layers)
    path = tmp_path_factory.mktemp("untrained") / "translator.keras"
    Translator(tokenizer, model).save(path)
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
    return written(tmp_path, english_sentences(60, seed=4))


@pytest.fixture
def few_lines(tmp_path):
    """Two short ones."""
    return written(tmp_path, english_sentences(9, seed=4))


def written(folder, sources):
    paths = folder / "train.en", folder / "train.nl"
    paths[0].write_text("".join(f"{line}\n" for line in sources))
    paths[1].write_text("".join(f"{dutch(line)}\n" for line in sources))
    return [str(path) for path in paths]


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


def test_options_may_come_before_the_texts(loaded_model, capfd):
    texts = ["one two", "red tree"]
    expected = main(["translate", loaded_model, *texts]), capfd.readouterr().out
    command = ["translate", "--beam-size", "1", loaded_model, "--max-length", "20"]
    found = main([*command, texts[0], "--on-too-long", "refuse", texts[1]])
    assert (found, capfd.readouterr().out) == expected


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


def test_lines_of_a_pipe_are_numbered_on(loaded_model, monkeypatch, pipe, capfd):
    monkeypatch.setattr(batch_translation, "WINDOW", 2)
    path, write = pipe
    write(b"one\ntwo\nthree\nfour")
    assert main(["translate", loaded_model, "--input", path, "--n-best", "1"]) == 0
    rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert [row[2] for row in rows] == ["een", "twee", "drie", "vier"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [(b"zero " * 100, "Text 3 has"), (b"\xe9", ", line 3: byte 0xe9 at column 1")],
)
def test_what_came_before_a_broken_line_of_a_pipe_is_translated(
    broken, message, loaded_model, monkeypatch, pipe, capfd
):
    monkeypatch.setattr(batch_translation, "WINDOW", 2)
    path, write = pipe
    write(b"one\ntwo\n" + broken)
    assert main(["translate", loaded_model, "--input", path]) == 1
    out, err = capfd.readouterr()
    assert out == "een\ntwee\n" and message in err


@pytest.mark.full
def test_a_program_answers_a_slow_pipe_line_by_line(model):
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


@pytest.mark.full
def test_an_output_leaves_a_users_unfinished_file_alone(loaded_model, tmp_path, capfd):
    names = "out.txt.unfinished", ".out.txt.unfinished", ".out.unfinished.txt"
    for name in names:
        (tmp_path / name).write_text("mine")
    output = tmp_path / "out.txt"
    assert main(["translate", loaded_model, "one", "--output", str(output)]) == 0
    assert output.read_text() == "een\n"
    assert all((tmp_path / name).read_text() == "mine" for name in names)


def test_a_full_disk_is_one_sentence_with_the_path(
    loaded_model, tmp_path, monkeypatch, capfd
):
    output = tmp_path / "out.txt"

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    error = fails(capfd, "translate", loaded_model, "one", "--output", output)
    assert error == f"keras-vanilla: {output}: No space left on device."
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_read_only_is_refused_before_the_work(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    output = tmp_path / "out.txt"
    error = fails(capfd, "translate", "no.keras", "one", "--output", output)
    assert error == (
        f"keras-vanilla: {output} cannot be written: its folder is read-only."
    )


def test_exhausted_memory_is_one_sentence_with_a_remedy(
    loaded_model, monkeypatch, capfd
):
    def exhausted(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when\n[[allocating]]")

    monkeypatch.setattr(Translator, "stream", exhausted)
    error = fails(capfd, "translate", loaded_model, "one")
    assert "not enough memory" in error and "--beam-size" in error


def test_translate_a_file_into_a_file_of_a_new_folder_in_order(
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


@pytest.mark.full
def test_the_n_best_of_each_line_with_scores(loaded_model, trained_translator, capfd):
    texts = ["one two three", "small house"]
    command = ["translate", loaded_model, *texts, "--beam-size", "3", "--n-best", "2"]
    assert main(command) == 0
    rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    expected = trained_translator.translate_n_best(texts, beam_size=3, n_best=2)
    for (_, score, text), found in zip(rows, sum(expected, []), strict=True):
        assert text == found[0] and float(score) == pytest.approx(found[1], abs=1e-4)


@pytest.mark.full
def test_translations_begin_as_asked_and_repeat_nothing(
    loaded_model, trained_translator, tmp_path, capfd
):
    path, texts = tmp_path / "in.txt", ["one two three", "one one one two two"]
    path.write_text("".join(f"{text}\n" for text in texts))
    for given, settings in (
        (["--target-prefix", "zes"], {"target_prefix": ["zes", "zes"]}),
        (["--no-repeat-ngram-size", "1"], {"no_repeat_ngram_size": 1}),
    ):
        command = ["translate", loaded_model, "--input", str(path), *given]
        assert main([*command, "--max-length", "9"]) == 0
        translations = capfd.readouterr().out.splitlines()
        assert translations == trained_translator.translate(
            texts, max_length=9, **settings
        )
        assert translations != trained_translator.translate(texts, max_length=9)


def test_translations_have_the_terms_of_a_file(
    loaded_model, trained_translator, tmp_path, capfd
):
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


@pytest.mark.parametrize(
    "content, expected",
    [
        ("a\tb\nc", "line 2: a term, a tab and its translation were expected."),
        ("a\tb\tc", "line 1: a term, a tab and its translation were expected."),
        ("\tb", "line 1: a term, a tab and its translation were expected."),
        ("a\tb\n\na\tc", "line 3: 'a' has another translation in line 1."),
    ],
)
def test_bad_lines_of_terms_are_refused(
    loaded_model, tmp_path, content, expected, capfd
):
    terms = tmp_path / "terms.tsv"
    terms.write_text(content)
    error = fails(capfd, "translate", loaded_model, "two", "--terms", terms)
    assert f"{terms}, {expected}" in error


@pytest.mark.full
def test_a_translation_has_no_loop_where_none_is_wanted(untrained, monkeypatch, capfd):
    looping = Translator.load(untrained)
    randomize(looping.model, seed=3)  # it says the same again and again
    monkeypatch.setattr(Translator, "load", lambda path: looping)
    text = "one two three"
    assert main(["translate", untrained, text, "--no-loops"]) == 0
    without = capfd.readouterr().out.splitlines()
    assert without == looping.translate([text], no_loops=True)
    assert without != looping.translate([text])


@pytest.mark.full
def test_alignments_stand_behind_each_translation(
    loaded_model, trained_translator, capfd
):
    texts = ["one two three", "small house", ""]
    assert main(["translate", loaded_model, *texts, "--alignments"]) == 0
    rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    links = trained_translator.align(texts, [text for text, _ in rows])
    assert [row[1] for row in rows] == [
        " ".join(f"{source}-{target}" for source, target in of_row) for of_row in links
    ]
    assert rows[0][1] == "2-0 1-1 0-2"


@pytest.mark.full
def test_texts_to_be_aligned_are_tokenised_once(loaded_model, monkeypatch, capfd):
    encoded, encode = [], Tokenizer.encode
    monkeypatch.setattr(
        Tokenizer,
        "encode",
        lambda self, lines: encoded.extend(lines) or encode(self, lines),
    )
    texts = ["one two three", "small house"]
    assert main(["translate", loaded_model, *texts, "--alignments"]) == 0
    assert encoded == texts


def test_a_tab_or_a_newline_in_a_translation_breaks_no_line(
    loaded_model, trained_translator, monkeypatch, capfd
):
    odd = [[Hypothesis("a\tb\nc", -1.0, [], True)], [Hypothesis("d", -2.0, [], True)]]
    monkeypatch.setattr(Translator, "stream", lambda *_, **__: iter(odd))
    assert main(["translate", loaded_model, "x", "y", "--n-best", "1"]) == 0
    assert capfd.readouterr().out == "1\t-1.0000\ta b c\n2\t-2.0000\td\n"


@pytest.mark.full
def test_a_file_has_its_name_only_when_it_is_whole(
    loaded_model, tmp_path, monkeypatch, capfd
):
    def stopped(*_, **__):
        yield [Hypothesis("a", None, [], True)]
        raise ValueError("stopped")

    output = tmp_path / "out.txt"
    command = ["translate", loaded_model, "x", "y", "--output", output]
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "stream", stopped)
        patch.setattr(batch_translation, "WINDOW", 1)
        assert fails(capfd, *command) == "keras-vanilla: stopped"
    assert list(tmp_path.iterdir()) == []
    assert main([str(word) for word in command]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.full
def test_long_texts_are_split_on_request(loaded_model, trained_translator, capfd):
    text = "One two three. " * 40
    error = fails(capfd, "translate", loaded_model, text)
    assert "takes at most 60" in error
    assert error.endswith(
        "on_too_long='split', its sentences are translated one by one."
    )
    assert main(["translate", loaded_model, text, "--on-too-long", "split"]) == 0
    out = capfd.readouterr().out
    expected = trained_translator.translate(["One two three."])[0]
    assert out == " ".join([expected] * 40) + "\n"


@pytest.mark.full
def test_lines_without_an_end_are_counted_and_named_and_aligned(loaded_model, capfd):
    command = ["translate", loaded_model, "one", "one two three four"]
    assert main([*command, "--max-length", "2", "--alignments"]) == 0
    out, err = capfd.readouterr()
    assert "reached their longest length without an end: texts 2" in err
    translation, alignment = out.splitlines()[1].split("\t")
    assert len(alignment.split()) == len(translation.split())


def test_evaluate_prints_scores_and_signature_of_files_or_a_table(
    loaded_model, files, tmp_path, capfd
):
    sides = [Path(path).read_text().splitlines() for path in files]
    rows = "".join(f"{s}\t{t}\n" for s, t in zip(*sides, strict=True))
    (tmp_path / "pairs.tsv").write_text(rows)
    outputs = []
    for corpus in (
        ["--source", files[0], "--reference", files[1]],
        ["--pairs", str(tmp_path / "pairs.tsv")],
        ["--pairs", str(tmp_path / "pairs.tsv"), "--columns", "1", "2"],
    ):
        assert main(["evaluate", loaded_model, *corpus]) == 0
        outputs.append(capfd.readouterr().out)
    (out,) = set(outputs)
    assert out.startswith("BLEU ") and "(60 lines)" in out and "tok:13a" in out
    assert out.count("worst, line ") == out.count("best, line ") == 3


def test_one_text_on_both_sides_is_refused(loaded_model, files, tmp_path, capfd):
    sides = [files[0], files[0]]
    for command in (
        ["evaluate", loaded_model, "--source", sides[0], "--reference", sides[1]],
        ["verify", loaded_model, "no.tflite", "--source", files[0], "--reference"]
        + [files[0]],
        ["train", "--source", files[0], "--target", files[0], "--output"]
        + [tmp_path / "out"],
    ):
        assert "must be a text and its translation" in fails(capfd, *command)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.full
def test_evaluate_for_a_program(loaded_model, files, trained_translator, capfd):
    command = ["evaluate", loaded_model, "--source", files[0], "--reference", files[1]]
    options = ["--beam-size", "2", "--lowercase", "--tokenized", "--language", "nl"]
    assert main([*command, *options, "--sentences", "1", "--json"]) == 0
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert err == "" and result["lines"] == 60 and result["unfinished"] == []
    assert "case:lc" in result["signature"] and "moses:nl" in result["signature"]
    assert "nc:6" in result["chrf_signature"] and result["left_out"] == {}
    (best,) = result["best"]
    (text,) = trained_translator.translate([best["source"]], beam_size=2)
    assert best["translation"] == text


def test_evaluate_leaves_out_what_is_too_long_and_says_so(loaded_model, files, capfd):
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
def test_a_folder_has_no_model_card_though_a_file_has_its_name(model, tmp_path, capfd):
    (tmp_path / "translator.md").write_text("notes")
    assert main(["export", model, str(tmp_path / "translator")]) == 0
    assert "model card" not in capfd.readouterr().out


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


@pytest.mark.parametrize("output", [("folder", "--quantize", "int8"), ("x.tflit",)])
def test_an_export_that_is_neither_file_nor_folder_is_refused(
    output, model, tmp_path, capfd
):
    path = tmp_path / output[0]
    assert "ends with .tflite" in fails(capfd, "export", model, path, *output[1:])
    assert not path.exists()


@pytest.mark.full
def test_verify_fails_for_another_model_and_says_what_to_do(
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
def test_training_says_what_it_leaves_out_and_ends_with_what_to_run(
    untrained, files, tmp_path, capfd
):
    validation = []
    for side, path in zip(("source", "target"), files, strict=True):
        copy = shutil.copy(path, f"{path}-validation")
        validation += [f"--validation-{side}", copy]
    with open(files[0], "a") as source, open(files[1], "a") as target:
        source.write("\none two\n" + "zero " * 50 + "\n")
        target.write("nul\n \nnul\n")
    output = tmp_path / "out"
    command = train(files, "--output", output, "--from", untrained, "--epochs", 1)
    command += validation
    command += ["--max-tokens", "40", "--name", "Toy"]
    assert main(command) == 0
    out, err = capfd.readouterr()
    translator = Translator.load(output / "translator.keras")
    assert translator.about.name == "Toy" and len(translator.about.examples) == 5
    example = translator.about.examples[0]
    assert f'keras-vanilla translate {output}/translator.keras "{example}"\n' in out
    assert "epoch 1/1: loss" in err and "tokens/s" in err and "BLEU" in err
    assert "61 pairs: dropout 0.0" in err
    assert "2 pairs are left out, empty: lines 61, 62" in err
    assert "1 of 61 pairs are longer than 40 tokens and are left out: lines 63" in err
    assert "source sentence that the training text has too" in " ".join(err.split())
    assert "\r" not in err and "\x1b" not in err  # where there is no terminal
    lines = err.splitlines()
    assert sum(not line.startswith("Training: ") for line in lines) == 6


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_saves_and_only_the_same_command_resumes(
    untrained, files, tmp_path, capfd
):
    output, epochs = tmp_path / "out", 12
    command = train(files, "--output", output, "--from", untrained, "--epochs", epochs)
    command += ["--max-tokens", "60"]
    program = run_as_program(*command)
    while program.poll() is None and "\n1" not in text_of(output / "history.csv"):
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
    first = [line.split(",")[0] for line in text_of(output / "history.csv").split()]
    assert first == ["epoch", *map(str, range(epochs))]
    assert not (output / "snapshots").exists()
    assert "exists already" in fails(capfd, *command)


def text_of(path):
    return path.read_text() if path.exists() else ""


def test_a_start_that_would_be_written_over_is_refused(tmp_path, capfd, files):
    output = tmp_path / "out"
    command = train(files, "--output", output, "--from", output / "last.keras")
    assert "would be overwritten" in fails(capfd, *command)


def test_files_of_unequal_length_show_both_counts(files, tmp_path, capfd):
    with open(files[1], "a") as file:
        file.write("nul\n")
    error = fails(capfd, *train(files, "--output", tmp_path / "out"))
    assert "60" in error and "61" in error
    assert not (tmp_path / "out").exists()


def test_bytes_that_are_not_utf8_show_file_and_line(files, tmp_path, capfd):
    with open(files[0], "rb+") as file:
        lines = file.read().split(b"\n")
        lines[41] = b"caf\xe9"
        file.seek(0)
        file.write(b"\n".join(lines))
    error = fails(capfd, *train(files, "--output", tmp_path / "out"))
    assert f"{files[0]}, line 42" in error


def test_a_file_in_which_to_translate_bytes_that_are_not_utf8(
    loaded_model, tmp_path, capfd
):
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"one\ntwo\ncaf\xe9\n")
    error = fails(capfd, "translate", loaded_model, "--input", path)
    assert f"{path}, line 3" in error


def test_an_empty_corpus(tmp_path, capfd):
    paths = [tmp_path / "empty.en", tmp_path / "empty.nl"]
    for path in paths:
        path.write_text("")
    error = fails(capfd, *train(list(map(str, paths)), "--output", tmp_path / "out"))
    assert "empty.en" in error


def test_a_missing_file(files, tmp_path, capfd):
    files[1] = str(tmp_path / "nowhere.nl")
    error = fails(capfd, *train(files, "--output", tmp_path / "out"))
    assert "nowhere.nl" in error


@pytest.mark.parametrize(
    "command",
    [
        ("train", "--source", "x", "--target", "x", "--output"),
        ("quickstart", "--output"),
        ("export", "x"),
        ("translate", "x", "text", "--output"),
    ],
    ids=lambda command: command[0],
)
def test_an_output_that_exists_is_refused_untouched(command, tmp_path, capfd):
    path = tmp_path / "mine.tflite"
    path.write_text("mine")
    assert "exists already" in fails(capfd, *command, path)
    assert path.read_text() == "mine"


PRESETS = "'tiny', 'small', 'base', 'big', 'phone', 'phone-small', 'phone-tiny'"


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("--preset", "huge", f"one of {PRESETS}. Received: 'huge'"),
        ("--recipe", "best", "one of 'auto', 'paper'. Received: 'best'"),
        ("--epochs", "0", "`epochs` must be an integer of at least 1. Received: 0"),
        ("--tokens-per-batch", "0", "`tokens_per_batch` must be an integer of at"),
        ("--warmup-steps", "0", "`warmup_steps` must be an integer of at least 1"),
        ("--vocabulary-size", "0", "`vocabulary_size` must be an integer of at least"),
        ("--validation-source", "x", "must be given together"),
    ],
)
def test_what_cannot_be_trained_with(option, value, message, files, tmp_path, capfd):
    output = tmp_path / "out"
    error = fails(capfd, *train(files, "--output", output, option, value))
    assert message in error
    assert not output.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"not a model"])
def test_a_model_that_is_truncated_or_not_ours(content, tmp_path, capfd):
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    error = fails(capfd, "translate", path, "text")
    assert f"{path} is not a Keras archive, or is cut short" in error


def test_a_text_longer_than_the_model_takes(loaded_model, capfd):
    error = fails(capfd, "translate", loaded_model, "short", "zero " * 100)
    assert "Text 2 has" in error and "at most 60" in error


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "no.keras", "one", "--output"],
        ["export", "no.keras"],
        ["convert", "no.keras"],
        ["caller", "python"],
    ],
)
def test_an_output_below_a_file_is_refused_before_the_work(command, tmp_path, capfd):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "out.keras"
    error = fails(capfd, *command, path)
    assert f"{path} cannot be written: {tmp_path / 'file'} is not a folder." in error


def test_texts_and_a_file_at_once(model, files, capfd):
    assert "not both" in fails(capfd, "translate", model, "x", "--input", files[0])


def test_validation_whose_lines_are_all_too_long_is_found_before_training(
    loaded_model, files, tmp_path, capfd
):
    for name, text in (("v.en", "zero " * 100), ("v.nl", "nul")):
        (tmp_path / name).write_text(text + "\n")
    validation = [f"--validation-{side}={tmp_path / name}" for side, name in SIDES]
    output = tmp_path / "out"
    command = train(
        files, "--output", output, "--from", loaded_model, "--max-tokens", 60
    )
    error = fails(capfd, *command, *validation)
    assert "v.nl: no pair is left of 1: 1 too long." in error
    assert not output.exists()


SIDES = (("source", "v.en"), ("target", "v.nl"))


def test_pairs_longer_than_the_model_takes_are_not_trained_on(
    loaded_model, files, tmp_path, capfd
):
    output = tmp_path / "out"
    options = ["--output", output, "--from", loaded_model, "--max-tokens", 61]
    error = fails(capfd, *train(files, *options))
    assert "at most the model's `max_length`, 60. Received: 61" in error


@pytest.mark.parametrize(
    "option", [("--preset", "tiny"), ("--vocabulary-size", "300")], ids=lambda o: o[0]
)
def test_a_model_to_train_on_from_has_its_own_sizes(
    option, loaded_model, files, tmp_path, capfd
):
    command = train(files, "--output", tmp_path / "out", "--from", loaded_model)
    assert "has its own" in fails(capfd, *command, *option)


def test_the_extra_is_named_when_it_is_missing(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "num2words", None)
    error = fails(capfd, "quickstart", "--output", tmp_path / "out")
    assert 'pip install ".[demo]"' in error


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ("--beam-size", "0"),
            "`beam_size` must be an integer from 1 to 1000. Received: 0",
        ),
        (("--max-length", "0"), "`max_length` must be an integer of at least 1"),
        (("--beam-size", "2", "--length-penalty", "nan"), "`length_penalty`"),
        (("--beam-size", "2", "--n-best", "3"), "at most `beam_size`, 2. Received: 3"),
        (("--n-best", "0"), "`n_best` must be an integer of at least 1"),
        (("--alignments", "--on-too-long", "split"), "cannot be combined"),
        (("--target-prefix", "a", "--on-too-long", "split"), "cannot be combined"),
        (("--target-prefix", "a b c", "--max-length", "1"), "Target prefix 1 has"),
        (("--no-repeat-ngram-size", "0"), "`no_repeat_ngram_size` must be an integer"),
        (("--length-penalty", "1"), "--length-penalty is for --beam-size above 1"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_searched_with(options, message, loaded_model, capfd):
    assert message in fails(capfd, "translate", loaded_model, "one", *options)


@pytest.mark.full
def test_a_reference_file_of_another_length(loaded_model, files, tmp_path, capfd):
    (tmp_path / "short").write_text("een\n")
    command = ["evaluate", loaded_model, "--source", files[0], "--reference"]
    error = fails(capfd, *command, tmp_path / "short")
    assert "60 source lines, 1 target lines" in error


@pytest.mark.parametrize(
    "options, message",
    [
        ((), "either --source with its translation, or --pairs"),
        (("--source", "x"), "--source needs the file of its translation"),
        (("--pairs", "x", "--target", "y"), "give no file"),
    ],
    ids=" ".join,
)
def test_a_corpus_that_is_not_one(options, message, tmp_path, capfd):
    output = tmp_path / "out"
    assert message in fails(capfd, "train", "--output", output, *options)
    assert not output.exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (("--language", "nl"), "--language is for --tokenized"),
        (("--tokenized",), "--tokenized needs the target language"),
        (("--length-penalty", "1"), "--length-penalty is for --beam-size above 1"),
        (("--sentences", "-1"), "--sentences must be at least 0. Received: -1"),
    ],
    ids=" ".join,
)
def test_what_would_be_ignored_is_refused(options, message, model, files, capfd):
    command = ["evaluate", model, "--source", files[0], "--reference", files[1]]
    assert message in fails(capfd, *command, *options)


@pytest.fixture
def runs(monkeypatch):
    """The trainings that were started, none of which has trained."""
    started = []

    def train(run):
        started.append(run)
        raise ValueError("This is enough.")

    monkeypatch.setattr(TrainingRun, "train", train)
    return started


def test_a_tokenizer_of_your_own(files, runs, tmp_path, capfd):
    texts = [Path(file).read_text() for file in files]
    (tmp_path / "text").write_text("".join(texts))
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


@pytest.mark.full
def test_a_vocabulary_for_each_language(files, runs, tmp_path, capfd):
    command = train(files, "--output", tmp_path / "out", "--preset", "tiny")
    error = fails(capfd, *command, "--separate-vocabularies")
    assert error.endswith("This is enough.")
    (run,) = runs
    translator = untrained_translator(run.config, run.corpus)
    assert translator.tokenizer.source_model != translator.tokenizer.target_model
    assert not translator.model.share_embeddings
    assert len(translator.translate(["one two"])) == 1
