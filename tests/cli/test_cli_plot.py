"""`keras-vanilla plot` as a person meets it."""

import sys

import pytest

from keras_vanilla.cli import main

TEXT = "green house two"


@pytest.fixture(scope="module")
def model(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "translator.keras"
    trained_translator.save(path)
    (path.parent / "history.csv").write_text(
        "epoch,loss,token_crossentropy,val_bleu\n0,5.5,5.0,1.5\n1,4.5,4.0,2.5\n"
    )
    return str(path)


def fails(capfd, *arguments):
    """Runs a command that must fail; returns its only line, the error's sentence."""
    assert main([str(argument) for argument in arguments]) == 1
    out, err = capfd.readouterr()
    (line,) = err.strip().splitlines()
    assert out == "" and line.startswith("keras-vanilla: ")
    return line


@pytest.mark.full
@pytest.mark.parametrize(
    ("picture", "ending", "start"),
    [
        ("attention", "png", b"\x89PNG"),
        ("positions", "svg", b"<?xml"),
        ("attention", "pdf", b"%PDF"),
    ],
)
def test_pictures_of_a_text(model, tmp_path, picture, ending, start):
    path = tmp_path / f"{picture}.{ending}"
    assert main(["plot", picture, model, TEXT, "-o", str(path)]) == 0
    assert path.read_bytes().startswith(start)


@pytest.mark.full
@pytest.mark.parametrize(
    ("picture", "choice", "title"),
    [
        (
            "attention",
            ["--kind", "encoder", "--layer", "1", "--head", "2"],
            "The encoder's self-attention, layer 1 of 1, head 2",
        ),
        ("attention", [], "Cross-attention, layer 1 of 1, mean of the heads"),
    ],
)
def test_options_choose_layer_and_head(model, tmp_path, picture, choice, title):
    path = tmp_path / "one.svg"
    assert main(["plot", picture, model, TEXT, *choice, "-o", str(path)]) == 0
    assert f"<!-- {title} -->" in path.read_text()  # beside the letters' outlines


def test_history_beside_the_model_is_drawn(model, tmp_path):
    for given in (model, str(model).removesuffix("translator.keras")):
        path = tmp_path / f"{len(given)}.png"
        assert main(["plot", "training", given, "-o", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("picture.gif", "must end with .png, .svg or .pdf. Received: "),
        ("picture", "must end with .png, .svg or .pdf. Received: "),
        ("/dev/null/a.png", "null/a.png cannot be written: /dev/null is not a folder."),
    ],
)
def test_invalid_outputs_are_refused_at_once(capfd, tmp_path, output, message):
    path = tmp_path / output
    assert message in fails(capfd, "plot", "positions", "no.keras", TEXT, "-o", path)


def test_missing_matplotlib_is_named(capfd, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = fails(capfd, "plot", "positions", "no.keras", TEXT, "-o", tmp_path / "a.png")
    assert 'pip install ".[notebooks]"' in line
