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
        ("search", "pdf", b"%PDF"),
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
        ("search", ["--beam-size", "2"], f"Beam search with 2 beams: {TEXT}"),
        ("search", [], f"Beam search with 4 beams: {TEXT}"),
    ],
)
def test_the_options_choose_what_is_drawn(model, tmp_path, picture, choice, title):
    path = tmp_path / "one.svg"
    assert main(["plot", picture, model, TEXT, *choice, "-o", str(path)]) == 0
    assert f"<!-- {title} -->" in path.read_text()  # beside the letters' outlines


def test_a_training_is_drawn_from_the_history_beside_its_model(model, tmp_path):
    for given in (model, str(model).removesuffix("translator.keras")):
        path = tmp_path / f"{len(given)}.png"
        assert main(["plot", "training", given, "-o", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")


def test_a_model_without_a_history_is_named(capfd, tmp_path):
    line = fails(capfd, "plot", "training", tmp_path, "-o", tmp_path / "a.png")
    assert f"There is no history.csv in {tmp_path}" in line
    line = fails(capfd, "plot", "training", "no.keras", "-o", tmp_path / "a.png")
    assert line.endswith("There is no file no.keras.")


def test_nothing_is_overwritten(capfd, model, tmp_path):
    path = tmp_path / "there.png"
    path.write_text("mine")
    line = fails(capfd, "plot", "positions", model, TEXT, "-o", path)
    assert line.endswith("there.png exists already; nothing was written.")
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("picture.gif", "must end with .png, .svg or .pdf. Received: "),
        ("picture", "must end with .png, .svg or .pdf. Received: "),
        ("/dev/null/a.png", "null/a.png cannot be written: /dev/null is not a folder."),
    ],
)
def test_files_that_cannot_be_written_are_found_at_once(
    capfd, tmp_path, output, message
):
    path = tmp_path / output
    assert message in fails(capfd, "plot", "search", "no.keras", TEXT, "-o", path)


@pytest.mark.full
def test_a_text_without_a_piece_is_a_sentence(capfd, model, tmp_path):
    for picture in ("attention", "positions", "search"):
        path = tmp_path / f"{picture}.png"
        line = fails(capfd, "plot", picture, model, "", "-o", path)
        assert line.endswith("The text must have at least one piece. Received: ''")
        assert not path.exists()


def test_a_model_that_is_not_there_is_a_sentence(capfd, tmp_path):
    path = tmp_path / "a.png"
    line = fails(capfd, "plot", "attention", "no.keras", TEXT, "-o", path)
    assert line.endswith("There is no file or folder no.keras.")


def test_without_matplotlib_a_sentence_says_what_to_install(
    capfd, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    line = fails(capfd, "plot", "search", "no.keras", TEXT, "-o", tmp_path / "a.png")
    assert 'pip install ".[notebooks]"' in line
