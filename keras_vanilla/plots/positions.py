"""Figures of positional encodings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.canvas import canvas
from keras_vanilla.plots.curves import curves
from keras_vanilla.plots.heat_map import checked_table, heat_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def position_map(
    encoding: ArrayLike,
    labels: Sequence[str] | None = None,
    *,
    title: str = "Positional encoding",
) -> "Figure":
    """Draws a table with the vector of each position as a row.

    Args:
        encoding: float array (L, D). Row k is the vector of position k.
        labels: sequence of L str, the tokens at the positions, or None.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the encoding is not a table of positions, or the labels do not
            fit it.
    """
    encoding = checked_table(encoding)
    highest = max(1.0, float(np.abs(encoding).max()))
    axis = "position" if labels is None else "token"
    names = {"title": title, "x_axis": "dimension", "y_axis": axis, "unit": "value"}
    style = {"limits": (-highest, highest), "axes": _room(*encoding.shape)}
    return heat_map(encoding, None, labels, **names, **style)


def position_curves(
    encoding: ArrayLike,
    dimensions: Sequence[int] = (4, 5, 6, 7),
    *,
    title: str = "Positional encoding",
) -> "Figure":
    """Draws some dimensions of the encoding over the positions.

    Args:
        encoding: float array (L, D). Row k is the vector of position k.
        dimensions: sequence of int. Columns to draw.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the encoding is not a table of positions, or does not have one of
            the dimensions.
    """
    encoding = checked_table(encoding)
    for dimension in dimensions:
        if not 0 <= dimension < encoding.shape[1]:
            raise ValueError(
                f"The encoding has dimensions 0 to {encoding.shape[1] - 1}. Received: "
                f"{dimension}"
            )
    positions = np.arange(len(encoding))
    lines = {f"dimension {d}": encoding[:, d] for d in dimensions}
    names = {"title": title, "x_axis": "position", "y_axis": "value"}
    axes = canvas(width=7.4, height=3.4)[1][0, 0]
    return curves(positions, lines, axes=axes, **names)


def position_similarity(
    encoding: ArrayLike,
    labels: Sequence[str] | None = None,
    *,
    title: str = "Similarity of positions",
) -> "Figure":
    """Draws the similarity of the vectors of each pair of positions.

        p_j · p_k / (|p_j| |p_k|)

    Args:
        encoding: float array (L, D). Row k is the vector p_k of position k.
        labels: sequence of L str, the tokens at the positions, or None.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the encoding is not a table of positions, or the labels do not
            fit it.
    """
    encoding = checked_table(encoding)
    lengths = np.linalg.norm(encoding, axis=1, keepdims=True)
    unit = encoding / np.maximum(lengths, 1e-12)
    axis = "position" if labels is None else "token"
    names = {"title": title, "x_axis": axis, "y_axis": axis, "unit": "cosine"}
    similarity = unit @ unit.T  # (L, L)
    axes = _room(*similarity.shape)
    return heat_map(similarity, labels, labels, axes=axes, **names)


def _room(rows, columns):
    """Creates axes for a table of this size, at most as large as a page."""
    width = np.clip(0.42 * columns + 2.2, 4.6, 8.7)
    height = np.clip(0.32 * rows + 1.2, 2.8, 7)
    return canvas(width=width, height=height)[1][0, 0]
