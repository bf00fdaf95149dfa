"""Figures of positional encodings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

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
    return heat_map(encoding, None, labels, limits=(-highest, highest), **names)


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
    return heat_map(unit @ unit.T, labels, labels, **names)
