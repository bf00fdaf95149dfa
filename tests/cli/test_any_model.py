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


def test_search_options_reach_model(opened, capfd):
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


def test_input_and_output_files(opened, tmp_path, capfd):
    lines = [f"line {number}" for number in range(600)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    files = [f"--{side}put={tmp_path / f'{side}.txt'}" for side in ("in", "out")]
    assert main(["translate", "m.tflite", *files]) == 0
    expected = "\n".join(lines).upper() + "\n"
    assert (tmp_path / "out.txt").read_text() == expected


def test_long_text_is_refused_by_number(opened, tmp_path, capfd):
    path = tmp_path / "out.txt"
    command = ["translate", "m.tflite", "one", "long", "--output", str(path)]
    assert main(command) == 1
    assert "Text 2: 900 bytes; the file takes 512." in capfd.readouterr().err
    assert not path.exists()


def test_json_lines(opened, capfd):
    assert main(["translate", "m.tflite", "één", "endless", "--json"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert rows == [
        {"line": 1, "source": "één", "translation": "ÉÉN", "ended": True},
        {"line": 2, "source": "endless", "translation": "END", "ended": False},
    ]


def test_scores_leave_out_or_refuse_long_sources(opened, files, tmp_path, capfd):
    assert main(["evaluate", str(tmp_path), *files, "--json"]) == 0
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert (result["lines"], result["left_out"]) == (2, {"too long": [2]})
    assert result["chrf"] == 100.0 and opened == [(str(tmp_path), {})]
    assert "1 of 3 sources are longer than the model takes" in err
    assert main(["evaluate", "m.tflite", *files, "--on-too-long", "refuse"]) == 1
    assert "line 2: 900 bytes; the file takes 512." in capfd.readouterr().err
