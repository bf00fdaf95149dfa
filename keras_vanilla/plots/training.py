"""Figures of the history, learning rate and target distributions of a training."""

import csv
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.canvas import canvas
from keras_vanilla.plots.curves import curves
from keras_vanilla.plots.heat_map import heat_maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (  # title, name of y, and labels for names in the history
    (
        "Cross-entropy",
        "nats per token",
        {
            "token_crossentropy": "training",
            "val_token_crossentropy": "validation",
            "loss": "training, smoothed",
            "val_loss": "validation, smoothed",
        },
    ),
    (
        "Accuracy of the next token",
        "share of tokens",
        {"token_accuracy": "training", "val_token_accuracy": "validation"},
    ),
    ("BLEU", "BLEU, 0 to 100", {"val_bleu": "validation"}),
    ("Learning rate", "at the end of an epoch", {"learning_rate": "learning rate"}),
)
POINTS = 400  # per line of a learning rate


def training_history(
    history: dict[str, ArrayLike] | keras.callbacks.History | str | os.PathLike,
    learning_rates: ArrayLike | None = None,
    *,
    title: str = "Training",
) -> "Figure":
    """Draws loss, accuracy, BLEU and learning rate of each epoch of a training.

    Args:
        history: dict of name: float array (epochs,), with the names that this package
            logs (`loss`, `token_crossentropy`, `token_accuracy`, `val_bleu`,
            `learning_rate`; prefix `val_` for validation); the result of `fit`; or the
            path of a `history.csv`. Other names are not drawn.
        learning_rates: float array (steps,) or None. Learning rate of every step.
        title: str.
    Returns:
        A matplotlib Figure with one picture per kind of value.
    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if there are no epochs or no known names, or the lengths differ.
    """
    if isinstance(history, str | os.PathLike):
        history = _read(history)
    history = dict(getattr(history, "history", history))
    epochs = _epochs(history)
    panels = []
    for name, y_axis, keys in PANELS:
        lines = {keys[key]: history[key] for key in keys if key in history}
        if lines:
            panels.append((epochs, lines, name, "epoch", y_axis))
    if not panels:
        raise ValueError(
            "A history needs one of the names that training logs, such as "
            f"'token_crossentropy' or 'val_bleu'. Received: {', '.join(history)}"
        )
    if learning_rates is not None:
        steps = np.arange(1, len(learning_rates) + 1)
        rates = {"rate": learning_rates}
        panels.append((steps, rates, "Learning rate", "step", "learning rate"))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    width, height = 4.4 * columns, 3.2 * rows + 0.4
    figure, grid = canvas(rows, columns, width=width, height=height, title=title)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, panels, strict=False):
        x, lines, name, x_axis, y_axis = panel
        curves(x, lines, title=name, x_axis=x_axis, y_axis=y_axis, axes=axes)
        if x is epochs:
            axes.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
            axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    return figure


def learning_rate(
    schedules: Callable[[int], float] | dict[str, Callable[[int], float]],
    steps: int,
    *,
    title: str = "Learning rate",
) -> "Figure":
    """Draws learning rates by step.

    Args:
        schedules: function of the number of previous updates, such as a
            `TransformerSchedule`; or dict of name: function.
        steps: int. The last step; the first is 1.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if `steps` is below 1, or there is no schedule.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1. Received: {steps}")
    named = schedules if isinstance(schedules, dict) else {"learning rate": schedules}
    drawn = np.unique(np.linspace(1, steps, POINTS).round().astype("int64"))
    lines = {
        name: np.array([float(schedule(int(step) - 1)) for step in drawn])
        for name, schedule in named.items()
    }
    return curves(drawn, lines, title=title, x_axis="step", y_axis="learning rate")


def distributions(
    targets: ArrayLike,
    probabilities: ArrayLike,
    vocabulary: Sequence[str],
    positions: Sequence[str] | None = None,
    *,
    titles: tuple[str, str] = ("target", "model"),
    title: str = "A distribution over the vocabulary at each position",
) -> "Figure":
    """Draws the target distribution at each position next to the model's.

    Args:
        targets: float array (T, V). One distribution per row.
        probabilities: float array (T, V). Distributions of the model.
        vocabulary: sequence of V str.
        positions: sequence of T str, or None. Names of the rows.
        titles: pair of str. Titles of the two tables.
        title: str. Title of the figure.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the shapes differ, a row has a negative number or does not sum to
            1, or as in `heat_map`.
    """
    tables = [np.asarray(table, "float64") for table in (targets, probabilities)]
    if tables[0].shape != tables[1].shape:
        raise ValueError(
            "`targets` and `probabilities` must have the same shape. Received: "
            f"{tables[0].shape} and {tables[1].shape}"
        )
    for name, table in zip(("targets", "probabilities"), tables, strict=True):
        if (table < 0).any() or not np.allclose(table.sum(axis=-1), 1, atol=1e-2):
            raise ValueError(
                f"Each row of `{name}` must be a distribution: no number below 0, and "
                "a sum of 1."
            )
    names = {"title": title, "x_axis": "vocabulary", "y_axis": "position"}
    style = {"unit": "probability", "limits": (0, 1), "numbers": None}
    return heat_maps(tables, titles, vocabulary, positions, **names, **style)


def _read(path):
    """Reads the columns of a file of Keras's `CSVLogger`; missing numbers become NaN.

    An incomplete last line, which a killed training may leave, is dropped.
    """
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if None not in row.values()]
    names = rows[0] if rows else ()
    return {name: [_number(row[name]) for row in rows] for name in names}


def _number(text):
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _epochs(history):
    """Returns the numbers of the epochs from 1; Keras counts from 0."""
    lengths = {name: len(values) for name, values in history.items()}
    if not lengths or not max(lengths.values()):
        raise ValueError("A history needs at least one epoch. Received: none")
    if len(set(lengths.values())) > 1:
        raise ValueError(
            "All values of a history must have the same number of epochs. Received: "
            f"{lengths}"
        )
    counted = range(next(iter(lengths.values())))
    return np.asarray(history.get("epoch", counted)) + 1
