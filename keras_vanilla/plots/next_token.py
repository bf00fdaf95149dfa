"""Bar charts of the probabilities of the next token."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.canvas import canvas
from keras_vanilla.plots.curves import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.005  # minimum probability for the bar of all other tokens


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
    groups = dict(zip(_unique_names(order, names), table[:, order].T, strict=True))
    others = np.delete(table, order, axis=1)  # (names, V - top)
    if others.sum() > LEAST:
        groups[f"{others.shape[1]} others"] = others.sum(axis=1)
    width = max(5.0, 0.55 * len(groups) * len(table) + 1.5)
    return bars(
        {
            group: dict(zip(probabilities, values.tolist(), strict=True))
            for group, values in groups.items()
        },
        title=title,
        y_axis="probability",
        x_axis="token",
        numbers="{:.2f}",
        axes=canvas(width=width, height=3.2)[1][0, 0],
    )


def _unique_names(ids, names):
    """Returns the names of the tokens, with ids if several have the same name."""
    texts = [str(names(i)) for i in ids]
    return [
        name if texts.count(name) == 1 else f"{name} ({i})"
        for i, name in zip(ids, texts, strict=True)
    ]
