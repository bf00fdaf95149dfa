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
    ("choice", "title"),
    [
        (
            ["--kind", "encoder", "--layer", "1", "--head", "2"],
            "The encoder's self-attention, layer 1 of 1, head 2",
        ),
        ([], "Cross-attention, layer 1 of 1, mean of the heads"),
    ],
)
def test_options_choose_layer_and_head(model, tmp_path, choice, title):
    path = tmp_path / "one.svg"
    assert main(["plot", "attention", model, TEXT, *choice, "-o", str(path)]) == 0
    assert f"<!-- {title} -->" in path.read_text()  # beside the letters' outlines


def test_history_beside_the_model_is_drawn(model, tmp_path):
    for given in (model, str(model).removesuffix("translator.keras")):
        path = tmp_path / f"{len(given)}.png"
        assert main(["plot", "training", given, "-o", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")


def test_missing_matplotlib_is_named(capfd, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = str(tmp_path / "a.png")
    assert main(["plot", "positions", "no.keras", TEXT, "-o", path]) == 1
    assert 'pip install ".[notebooks]"' in capfd.readouterr().err
