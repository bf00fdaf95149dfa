"""What pictures refuse."""

import sys
from pathlib import Path

import numpy as np
import pytest
from refusal import Refusal

from keras_vanilla.cli import parser
from keras_vanilla.plots import (
    attention_links,
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


def translation(draw, *arguments, **settings):
    """A call of a picture of a text, by the translator that the package brings."""
    return lambda: draw(Translator.from_preset("en-fr"), *arguments, **settings)


def command(*arguments):
    """A call of `keras-vanilla plot`, whose file is in an empty folder."""

    def run(folder):
        given = [argument.format(folder) for argument in arguments]
        options = parser().parse_args(["plot", *given])
        options.run(options)

    return run


def without_matplotlib():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        heat_map([[1]], **NAMES)


def existing_picture(folder):
    Path(folder, "a.png").touch()
    command("positions", "m.keras", "A", "-o", "{}/a.png")(folder)


ROWS = [
    Refusal("no matplotlib", without_matplotlib, r"\[notebooks\]", ImportError),
    *(
        Refusal(
            f"table of shape {shape}",
            call(heat_map, np.zeros(shape), **NAMES),
            rf"table .*{shape[0]}",
        )
        for shape in [(0, 0), (3,), (1, 0), (2, 2, 2)]
    ),
    Refusal(
        "column names",
        call(heat_map, np.zeros((2, 3)), ["a", "b"], **NAMES),
        "`x_labels`.*3 columns.*2 names",
    ),
    Refusal(
        "row names",
        call(heat_maps, [[[1.0]]], ["a"], None, [], **NAMES),
        "`y_labels`.*1 rows.*0 names",
    ),
    Refusal(
        "columns of tables",
        call(heat_maps, [[[1.0]]], ["a"], columns=0, **NAMES),
        "`columns`.*0",
    ),
    Refusal("no tables", call(heat_maps, [], [], **NAMES), "0 tables"),
    Refusal(
        "titles of tables",
        call(heat_maps, [[[1.0]]], ["a", "b"], **NAMES),
        "1 tables, 2 titles",
    ),
    Refusal(
        "shapes of tables",
        call(heat_maps, [np.eye(2), np.eye(3)], ["a", "b"], **NAMES),
        r"\(2, 2\), \(3, 3\)",
    ),
    Refusal(
        "part", call(heat_map, np.eye(2), part="memmory", **NAMES), "`part`.*'memmory'"
    ),
    *(
        Refusal(
            f"{draw.__name__} of shape {shape}",
            call(draw, np.zeros(shape), ["a"] * 4),
            r"\(heads, T, S\).*shape \(",
        )
        for draw in (attention_map, attention_links)
        for shape in [(4,), (1, 2, 4, 4), (0, 0), (2, 0, 3)]
    ),
    Refusal(
        "names of heads",
        call(attention_map, np.ones((2, 2, 3)), "ab", "xyz", heads=["h"]),
        "2 heads, 2 queries and 3 keys.*1 heads",
    ),
    Refusal(
        "names of links",
        call(attention_links, np.ones((2, 3)), "a", "xyz"),
        "2 queries and 3 keys.*1 queries",
    ),
    *(
        Refusal(
            f"links of shape {shape}",
            call(attention_links, np.ones(shape), "q" * shape[-2], "k" * shape[-1]),
            "one head and at most 40.*shape",
        )
        for shape in [(2, 6, 6), (41, 6), (6, 41)]
    ),
    *(
        Refusal(
            f"link of weight {weight}",
            call(attention_links, [[0.5, weight]], "a", "xy"),
            "at least 0.*Received: ",
        )
        for weight in (-0.1, np.nan, np.inf)
    ),
    *(
        Refusal(
            f"query {query}",
            call(attention_links, np.eye(6), "abcdef", query=query),
            f"`query`.*6 queries.*{query}",
        )
        for query in (-1, 6)
    ),
    *(
        Refusal(f"mask of shape {mask.shape}", call(mask_table, mask), "true and false")
        for mask in (np.ones((1, 5, 5), bool), np.ones((0, 5)), np.full((2, 2), 0.5))
    ),
    Refusal(
        "names of a mask", call(mask_table, np.ones((2, 2)), ["a"]), "Received: 1 names"
    ),
    *(
        Refusal(f"{draw.__name__}: {why}", call(draw, *arguments), pattern)
        for draw in (position_map, position_similarity)
        for why, arguments, pattern in (
            ("no table", (np.zeros(3),), r"table.*\(3,\)"),
            ("labels", (np.zeros((5, 6)), ["one"]), "labels`.*1 names"),
        )
    ),
    Refusal("no epochs", call(training_history, {"loss": []}), "epoch.*none"),
    Refusal("unknown names", call(training_history, {"speed": [1.0]}), "speed"),
    Refusal(
        "lengths of a history",
        call(training_history, {"loss": [1.0, 2.0], "val_bleu": [1.0]}),
        "'val_bleu': 1",
    ),
    Refusal(
        "no history file",
        lambda folder: training_history(folder / "history.csv"),
        "history.csv",
        FileNotFoundError,
    ),
    *(
        Refusal(
            f"{draw.__name__} of {text!r}",
            translation(draw, text),
            f"The text.*{text!r}",
        )
        for draw in (translation_attention, translation_positions)
        for text in ("", "   ")
    ),
    *(
        Refusal(
            f"{name} {value}",
            translation(translation_attention, "A cat.", **{name: value}),
            f"`{name}`.*{value}",
        )
        for name, value in [("kind", "both"), ("layer", 0), ("layer", 7), ("head", 99)]
    ),
    *(
        Refusal(
            f"output {output}",
            command("positions", "m.keras", "A", "-o", "{}/" + output),
            rf"\.png, \.svg or \.pdf.*{output}",
        )
        for output in ("picture.gif", "picture")
    ),
    Refusal(
        "existing output", existing_picture, "a.png exists already", FileExistsError
    ),
    Refusal(
        "no model",
        command("training", "{}/no.keras", "-o", "{}/a.png"),
        "no.keras",
        FileNotFoundError,
    ),
    Refusal(
        "no history",
        command("training", "{}", "-o", "{}/a.png"),
        "no history.csv",
        FileNotFoundError,
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
