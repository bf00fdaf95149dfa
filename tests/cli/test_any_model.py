"""Commands that translate, with a model that is not a `.keras` file."""

import json

import pytest

from keras_vanilla import bulk
from keras_vanilla.bulk import LineTranslation
from keras_vanilla.bulk.line_translators import NO_END
from keras_vanilla.cli import main


@pytest.fixture
def opened(monkeypatch):
    """What the model is opened with; it writes in capitals, and not all of it."""
    given = []

    def translate(texts):
        results = [LineTranslation(text.upper()) for text in texts]
        for i, text in enumerate(texts):
            if text == "long":
                results[i] = LineTranslation("", "900 bytes; the file takes 512")
            if text == "endless":
                results[i] = LineTranslation("END", NO_END)
        return results

    def open_line_translator(model, **search):
        given.append((model, search))
        return translate

    monkeypatch.setattr(bulk, "open_line_translator", open_line_translator)
    return given


@pytest.fixture
def files(tmp_path):
    for name, lines in (("a.en", "one\nlong\ntwo\n"), ("a.nl", "ONE\nx\nTWO\n")):
        (tmp_path / name).write_text(lines)
    return ["--source", str(tmp_path / "a.en"), "--reference", str(tmp_path / "a.nl")]


def test_texts_are_translated_with_the_search_that_was_asked_for(opened, capfd):
    assert main(["translate", "m.tflite", "one", "endless", "two"]) == 0
    out, err = capfd.readouterr()
    assert out == "ONE\nEND\nTWO\n"
    assert "1 of 3 translations reached their longest length" in err
    assert main(["translate", "m.tflite", "one", "--beam-size", "1"]) == 0
    assert opened.pop() == ("m.tflite", {"beam_size": 1})
    options = ["--beam-size", "4", "--max-length", "9", "--no-loops"]
    assert main(["translate", "m.tflite", "one", *options]) == 0
    search = {"beam_size": 4, "max_length": 9, "no_loops": True}
    assert opened == [("m.tflite", {}), ("m.tflite", search)]


def test_a_folder_is_opened_as_what_it_holds(opened, tmp_path, capfd):
    assert main(["translate", str(tmp_path), "one"]) == 0
    assert opened == [(str(tmp_path), {})]


def test_the_input_and_the_output_may_be_files(opened, tmp_path, capfd):
    lines = [f"line {number}" for number in range(600)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    files = [f"--{side}put={tmp_path / f'{side}.txt'}" for side in ("in", "out")]
    assert main(["translate", "m.tflite", *files]) == 0
    expected = "\n".join(lines).upper() + "\n"
    assert (tmp_path / "out.txt").read_text() == expected


def test_a_text_that_is_too_long_is_refused_by_its_number(opened, tmp_path, capfd):
    path = tmp_path / "out.txt"
    command = ["translate", "m.tflite", "one", "long", "--output", str(path)]
    assert main(command) == 1
    assert "Text 2: 900 bytes; the file takes 512." in capfd.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--n-best", "2"],
        ["--n-best", "0"],
        ["--target-prefix", ""],
        ["--alignments"],
        ["--target-prefix", "a"],
        ["--terms", "terms.tsv"],
        ["--copy", "url"],
        ["--no-repeat-ngram-size", "3"],
        ["--on-too-long", "split"],
    ],
)
def test_what_needs_a_keras_file_is_refused(options, opened, capfd):
    assert main(["translate", "m.tflite", "one", *options]) == 1
    error = capfd.readouterr().err
    assert f"{options[0]} is for .keras files. Received: m.tflite" in error
    assert not opened


def test_each_translation_is_a_line_of_json(opened, capfd):
    assert main(["translate", "m.tflite", "één", "endless", "--json"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert rows == [
        {"line": 1, "source": "één", "translation": "ÉÉN", "ended": True},
        {"line": 2, "source": "endless", "translation": "END", "ended": False},
    ]


def test_scores_leave_out_what_is_too_long(opened, files, capfd):
    assert main(["evaluate", "m.tflite", *files, "--json"]) == 0
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert (result["lines"], result["left_out"]) == (2, {"too long": [2]})
    assert result["chrf"] == 100.0
    assert "1 of 3 sources are longer than the model takes" in err


def test_scores_can_refuse_what_is_too_long(opened, files, capfd):
    assert main(["evaluate", "m.tflite", *files, "--on-too-long", "refuse"]) == 1
    assert "line 2: 900 bytes; the file takes 512." in capfd.readouterr().err
    assert main(["evaluate", "m.tflite", *files, "--on-too-long", "split"]) == 1
    assert "split is for .keras files" in capfd.readouterr().err
