"""A figure of the history of a training."""

import csv
import os
from typing import TYPE_CHECKING

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.style import style

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
MARKED = 24  # a line with more points than this has no markers


@style()
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
    from matplotlib.figure import Figure

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
    figure = Figure((4.4 * columns, 3.2 * rows + 0.4))
    figure.suptitle(title, wrap=True)
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    for axes, (x, lines, name, x_axis, y_axis) in zip(grid, panels, strict=False):
        for label, values in lines.items():
            axes.plot(x, values, label=label, marker="o" if len(x) <= MARKED else None)
        axes.set(title=name, xlabel=x_axis, ylabel=y_axis)
        axes.grid(True)
        if len(lines) > 1:
            axes.legend()
        if x is epochs:
            axes.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
            axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    return figure


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
