"""Probabilities of tokens: the next one, and at each position of a text."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from drawings.canvas import canvas
from drawings.curves import bars
from keras_vanilla.plots.heat_map import heat_maps
from keras_vanilla.plots.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.005  # minimum probability for the bar of all other tokens


@style()
def next_token(
    probabilities: ArrayLike | dict[str, ArrayLike],
    names: Callable[[int], str],
    *,
    top: int = 8,
    title: str = "The next token",
) -> "Figure":
    """Draws the most probable next tokens as bars, and all others as one bar.

    Args:
        probabilities: float array (V,), or dict of name: float array (V,), drawn side
            by side; the tokens are the most probable ones in any of them.
        names: function from an id to its name.
        top: int. Number of tokens with a separate bar.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are no probabilities, one is not of shape (V,) or not
            finite, or `top` is below 1.
    """
    if not isinstance(probabilities, dict):
        probabilities = {"probability": probabilities}
    shapes = {np.shape(values) for values in probabilities.values()}
    if len(shapes) != 1 or len(*shapes) != 1:
        raise ValueError(
            "Next tokens are drawn from probabilities of one shape (V,). Received: "
            f"{sorted(shapes)}"
        )
    if top < 1:
        raise ValueError(f"`top` must be at least 1. Received: {top}")
    table = np.stack([np.asarray(values) for values in probabilities.values()])
    if not np.isfinite(table).all():
        raise ValueError("Probabilities must be finite numbers. Received: NaN or inf")
    order = np.argsort(-table.max(axis=0), kind="stable")[:top]
    order = order[np.argsort(-table[0, order], kind="stable")]
    texts, groups = [str(names(i)) for i in order], {}
    for i, text in zip(order, texts, strict=True):
        name = text if texts.count(text) == 1 else f"{text} ({i})"
        groups[name] = table[:, i]
    others = np.delete(table, order, axis=1)  # (names, V - top)
    if others.sum() > LEAST:
        groups[f"{others.shape[1]} others"] = others.sum(axis=1)
    width = max(5.0, 0.55 * len(groups) * len(table) + 1.5)
    values = {
        group: dict(zip(probabilities, heights.tolist(), strict=True))
        for group, heights in groups.items()
    }
    names = {"title": title, "x_axis": "token", "y_axis": "probability"}
    axes = canvas(width=width, height=3.2)[1][0, 0]
    return bars(values, numbers="{:.2f}", axes=axes, **names)


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
