"""What pictures refuse."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
from refusal import Refusal

from keras_vanilla.cli import parser
from keras_vanilla.plots import (
    attention_map,
    heat_map,
    heat_maps,
    mask_table,
    position_map,
    position_similarity,
    training_history,
    translation_attention,
    translation_positions,
)
from keras_vanilla.translation import Translator

NAMES = {"title": "t", "x_axis": "x", "y_axis": "y"}


def call(function, *arguments, **settings):
    return lambda: function(*arguments, **settings)


@functools.cache
def pretrained():
    return Translator.from_preset("en-fr")


def translation(draw, *arguments, **settings):
    """A call of a picture of a text, by the translator that the package brings."""
    return lambda: draw(pretrained(), *arguments, **settings)


def command(arguments):
    """A call of `keras-vanilla plot`, whose file is in an empty folder."""

    def run(folder):
        words = arguments.replace("{}", str(folder)).split()
        options = parser().parse_args(["plot", *words])
        options.run(options)

    return run


def without_matplotlib():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        heat_map([[1]], **NAMES)


def existing_picture(folder):
    Path(folder, "a.png").touch()
    command("positions m.keras A -o {}/a.png")(folder)


EYE = np.eye(2)
TABLES = {  # -> what `heat_map` is given
    r"table .*\(0, 0\)": np.zeros((0, 0)),
    r"table .*\(3,\)": np.zeros(3),
    r"table .*\(2, 2, 2\)": np.zeros((2, 2, 2)),
}
MAPS = {  # -> positional arguments of `heat_maps`
    "0 tables": ([], []),
    "1 tables, 2 titles": ([[[1.0]]], ["a", "b"]),
    r"\(2, 2\), \(3, 3\)": ([EYE, np.eye(3)], ["a", "b"]),
    "`x_labels`.*3 columns.*2 names": ([np.zeros((2, 3))], ["t"], ["a", "b"]),
    "`y_labels`.*1 rows.*0 names": ([[[1.0]]], ["a"], None, []),
}
HISTORIES = {
    "epoch.*none": {"loss": []},
    "speed": {"speed": [1.0]},
    "'val_bleu': 1": {"loss": [1.0, 2.0], "val_bleu": [1.0]},
}
ATTENTION = {"kind": "both", "layer": 7, "head": 99}
FILES = {  # -> arguments of the command
    r"\.png, \.svg or \.pdf.*picture.gif": "positions m.keras A -o {}/picture.gif",
    r"\.png, \.svg or \.pdf.*picture": "positions m.keras A -o {}/picture",
}
MISSING = {
    "no .*/history.csv": "training {} -o {}/a.png",
}
ROWS = [
    Refusal("no matplotlib", without_matplotlib, r"\[notebooks\]", ImportError),
    *(Refusal(x, call(heat_map, y, **NAMES), x) for x, y in TABLES.items()),
    *(Refusal(x, call(heat_maps, *y, **NAMES), x) for x, y in MAPS.items()),
    Refusal(
        "columns", call(heat_maps, [EYE], ["a"], columns=0, **NAMES), "`columns`.*0"
    ),
    Refusal("part", call(heat_map, EYE, part="memmory", **NAMES), "`part`.*'memmory'"),
    *(
        Refusal(
            f"weights {x}", call(attention_map, np.zeros(x), ["a"]), r"heads, T.*\("
        )
        for x in [(4,), (1, 2, 4, 4), (0, 0), (2, 0, 3)]
    ),
    Refusal(
        "names of heads",
        call(attention_map, np.ones((2, 2, 3)), "ab", "xyz", heads=["h"]),
        "2 heads, 2 queries and 3 keys.*1 heads",
    ),
    *(
        Refusal(f"mask of shape {mask.shape}", call(mask_table, mask), "true and false")
        for mask in (np.ones((1, 5, 5), bool), np.ones((0, 5)), np.full((2, 2), 0.5))
    ),
    *(
        Refusal(f"{draw.__name__} of a row", call(draw, np.zeros(3)), r"table.*\(3,\)")
        for draw in (position_map, position_similarity)
    ),
    *(Refusal(x, call(training_history, y), x) for x, y in HISTORIES.items()),
    *(
        Refusal(f"{draw.__name__} of {x!r}", translation(draw, x), f"The text.*{x!r}")
        for draw in (translation_attention, translation_positions)
        for x in ("", "   ")
    ),
    *(
        Refusal(
            f"{name} {value}",
            translation(translation_attention, "A cat.", **{name: value}),
            f"`{name}`.*{value}",
        )
        for name, value in ATTENTION.items()
    ),
    *(Refusal(x, command(y), x) for x, y in FILES.items()),
    *(Refusal(x, command(y), x, FileNotFoundError) for x, y in MISSING.items()),
    Refusal(
        "existing output", existing_picture, "a.png exists already", FileExistsError
    ),
]
COMPLETE = (
    "plots/attention.py",
    "plots/heat_map.py",
    "plots/style.py",
    "plots/training.py",
    "plots/translation.py",
    "cli/plot.py",
)
