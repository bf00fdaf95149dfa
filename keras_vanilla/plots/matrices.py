"""Drawings of matrix products with all numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.canvas import canvas, name_picture, title_inches
from keras_vanilla.plots.palette import PARTS, color_map, ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = 0.46  # inches, the side of a cell
SIGN = 0.5  # width of a sign between two matrices
MOST_CELLS = 12  # rows and columns of a matrix


class _Matrix(NamedTuple):
    name: str
    values: np.ndarray
    part: str | None


def matrix_product(
    left: ArrayLike,
    right: ArrayLike,
    *,
    names: Sequence[str] = ("A", "B", "A B"),
    parts: Sequence[str | None] = (None, None, None),
    then: tuple[str, str, ArrayLike] | None = None,
    numbers: str = "{:.2f}",
    title: str = "",
) -> "Figure":
    """Draws two matrices and their product, with all numbers.

    Cells above 0 are magenta, cells below 0 are lime, and 0 is white; darker cells are
    farther from 0. Names and frames of parts of the model have the part's colour.

    Args:
        left: float array (N, D).
        right: float array (D, M).
        names: sequence of three str, the names of both matrices and of the product.
        parts: sequence of three names of `palette.PARTS` or None, which determine the
            colours of names and frames.
        then: None, or an operation on the product: a tuple of its description, the name
            of the result, and the result, a float array with as many rows as the
            product.
        numbers: str. Format of the numbers.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the shapes do not match, or a matrix has more than 12 rows or
            columns.
    Example:
        plots.matrix_product(
            X, W, names=("X", "W^Q", "Q"), parts=("X", None, "Q"), title="Queries"
        )
    """
    left, right = (np.asarray(each, dtype="float64") for each in (left, right))
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise ValueError(
            "A product needs matrices (N, D) and (D, M). Received: shapes "
            f"{left.shape} and {right.shape}"
        )
    found = (left, right, left @ right)
    row = [_Matrix(*each) for each in zip(names, found, parts, strict=True)]
    signs = ["·", "="]
    if then is not None:
        done, name, values = then
        row.append(_Matrix(name, np.asarray(values, dtype="float64"), None))
        signs.append(f"{done} →")
    _check(row)
    return _drawn(row, signs, numbers, title)


def _check(row):
    for name, values, _ in row:
        if values.ndim != 2 or not 1 <= max(values.shape) <= MOST_CELLS:
            raise ValueError(
                f"A matrix is drawn if it has at most {MOST_CELLS} rows and columns. "
                f"Received: {name} of shape {values.shape}"
            )


def _drawn(row, signs, numbers, title):
    widths = [matrix.values.shape[1] * CELL for matrix in row]
    gaps = [max(SIGN, 0.1 * len(sign) + 0.2) for sign in signs]
    tallest = max(matrix.values.shape[0] for matrix in row) * CELL
    width, height = sum(widths) + sum(gaps) + 0.6, tallest + 0.9
    size = {"width": max(width, title_inches(title)), "height": height + 0.4}
    axes = canvas(**size)[1][0, 0]
    axes.set_axis_off()
    name_picture(axes, title)
    axes.set(xlim=(-0.3, width - 0.3), ylim=(-height / 2, height / 2), aspect="equal")
    x = 0.0
    for matrix, wide, sign, gap in zip(
        row, widths, [*signs, ""], [*gaps, 0], strict=True
    ):
        _draw_matrix(axes, matrix, x, numbers)
        axes.text(x + wide + gap / 2, 0, sign, ha="center", va="center", fontsize=11)
        x += wide + gap
    named = [
        f"{name} ({values.shape[0]} × {values.shape[1]})" for name, values, _ in row
    ]
    terms = [term for pair in zip(named, [*signs, ""], strict=True) for term in pair]
    axes.figure.alt = f"{title}: matrices with all numbers, {' '.join(terms).strip()}."
    return axes.figure


def _draw_matrix(axes: "Axes", matrix, x, numbers):
    """Draws a matrix with its left edge at x and its middle row at 0."""
    from matplotlib.patches import Rectangle

    name, values, part = matrix
    rows, columns = values.shape
    top = rows * CELL / 2
    colors = color_map(None, signed=True)
    largest = max(np.abs(values).max(), 1e-12)
    for (row, column), value in np.ndenumerate(values):
        fill = colors(0.5 + 0.4 * value / largest)
        corner = x + column * CELL, top - (row + 1) * CELL
        axes.add_patch(Rectangle(corner, CELL, CELL, facecolor=fill, edgecolor="white"))
        middle = corner[0] + CELL / 2, corner[1] + CELL / 2
        style = {"ha": "center", "va": "center", "fontsize": 8, "color": ink_on(fill)}
        axes.text(*middle, numbers.format(value), **style)
    edge = PARTS[part].dark if part else "black"
    frame = {"facecolor": "none", "edgecolor": edge, "linewidth": 2.4 if part else 1.2}
    axes.add_patch(Rectangle((x, -top), columns * CELL, rows * CELL, **frame))
    middle = x + columns * CELL / 2
    style = {
        "ha": "center",
        "fontsize": 11,
        "fontweight": "bold" if part else "normal",
        "color": edge,
    }
    axes.text(middle, top + 0.1, name, va="bottom", **style)
    axes.text(
        middle, -top - 0.1, f"{rows} × {columns}", ha="center", va="top", fontsize=8
    )
