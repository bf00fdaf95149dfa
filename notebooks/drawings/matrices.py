"""Drawings of matrices: products with all numbers, and multi-head attention."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drawings.canvas import title_inches
from drawings.drawing import Box, draw_arrow, draw_box, plane, write
from keras_vanilla.plots.style import PARTS, color_map, ink_on, shown, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.layers import MultiHeadAttention

CELL = 0.46  # inches, the side of a cell with a number
SIGN = 0.5  # width of a sign between two matrices
MOST_CELLS = 12  # rows and columns of a matrix with numbers
MOST_HEADS, MOST_TOKENS = 8, 4
EMPTY = 0.14  # inches, the side of a cell without a number
ACROSS, UP = 3, 4  # cells drawn for the size of a head and for d_model
ROW = 0.86  # inches from head to head
NEXT = 0.58  # inches from Q to K to V
X, KERNELS, PROJECTIONS, Z = 0.95, 2.35, 4.3, 6.25  # left ends of these matrices


class _Matrix(NamedTuple):
    name: str
    values: np.ndarray
    part: str | None


@style()
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
        parts: sequence of three names of `style.PARTS` or None, which determine the
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
        matrix_product(
            X, W, names=("X", "W^Q", "Q"), parts=("X", None, "Q"), title="Queries"
        )
    """
    left, right = (np.asarray(each, dtype="float64") for each in (left, right))
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise ValueError(
            "A product needs matrices (N, D) and (D, M). Received: shapes "
            f"{left.shape} and {right.shape}"
        )
    matrices = (left, right, left @ right)
    row = [_Matrix(*each) for each in zip(names, matrices, parts, strict=True)]
    signs = ["·", "=", ""]
    if then is not None:
        done, name, values = then
        row.append(_Matrix(name, np.asarray(values, dtype="float64"), None))
        signs[2:] = [f"{done} →", ""]
    for name, values, _ in row:
        if values.ndim != 2 or not 1 <= max(values.shape) <= MOST_CELLS:
            raise ValueError(
                f"A matrix is drawn if it has at most {MOST_CELLS} rows and columns. "
                f"Received: {name} of shape {values.shape}"
            )
    return _draw_product(row, signs, numbers, title)


@style()
def multi_head(
    layer: "MultiHeadAttention",
    tokens: Sequence[str],
    *,
    title: str = "Multi-head attention, from X to Z",
) -> "Figure":
    """Draws the matrices of self-attention for all heads, labelled with their sizes.

        X -> W_i^Q, W_i^K, W_i^V -> Q_i, K_i, V_i -> Z_i -> Concat(Z_1, ...) W^O = Z

    Args:
        layer: MultiHeadAttention that is built, with at most 8 heads.
        tokens: sequence of at most 4 str, the rows of X.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are too many heads or tokens, or no tokens.
    """
    heads, count = layer.num_heads, len(tokens)
    if heads > MOST_HEADS or not 1 <= count <= MOST_TOKENS:
        raise ValueError(
            f"At most {MOST_HEADS} heads and 1 to {MOST_TOKENS} tokens can be drawn. "
            f"Received: {heads} heads, {count} tokens"
        )
    width, key_dim = layer.query_dense.kernel.shape[0], layer.key_dim
    value_dim, d_model = layer.output_dense.kernel.shape[1:]
    lowest = -(heads - 1) * ROW
    limits = (-0.3, 8.1), (lowest - 2.85, 1.25)
    axes = plane(title, 8.6, heads * ROW + 3.6, *limits)
    axes.set_aspect("equal")
    steps = {
        0.1: "1. one row\nper token",
        KERNELS: "2. times three matrices\nof each head",
        PROJECTIONS: "3. queries, keys, values\nof each head",
        Z - 0.25: "4. attention\nof each head",
    }
    for left, text in steps.items():
        write(axes, left, 0.95, text, 8.5, ha="left")
    middle = lowest / 2
    right = _draw_empty(axes, X, middle, (count, 8), "X", "X", f"{count} × {width}")
    for row, token in enumerate(tokens):
        up = middle + (count / 2 - row - 0.5) * EMPTY
        write(axes, X - 0.08, up, shown(token, longest=11), 8.5, ha="right")
    sizes = f"{width} × {key_dim}", f"{count} × {key_dim}", f"{count} × {value_dim}"
    for head in range(heads):
        draw_arrow(axes, (right + 0.05, middle), (KERNELS - 0.1, -head * ROW))
        _draw_head(axes, head, count, sizes if head == heads - 1 else ("", "", ""))
    _draw_output(axes, lowest, count, heads, value_dim, d_model)
    axes.figure.set_label(
        f"{title}: X ({count} × {width}) goes to {heads} heads. Each multiplies it by "
        f"its own W^Q, W^K and W^V ({width} × {key_dim}), and its attention gives a "
        f"matrix Z_i ({count} × {value_dim}). The {heads} matrices side by side "
        f"({count} × {heads * value_dim}), times W^O ({heads * value_dim} × "
        f"{d_model}), are Z ({count} × {d_model})."
    )
    return axes.figure


def _draw_product(row, signs, numbers, title):
    shapes = [matrix.values.shape for matrix in row]
    widths = [columns * CELL for _, columns in shapes]
    gaps = [max(SIGN, 0.1 * len(sign) + 0.2) for sign in signs]
    width = sum(widths) + sum(gaps[:-1]) + 0.6
    height = max(rows for rows, _ in shapes) * CELL + 0.9
    limits = (-0.3, width - 0.3), (-height / 2, height / 2)
    axes = plane(title, max(width, title_inches(title)), height + 0.4, *limits)
    axes.set_aspect("equal")
    x, terms = 0.0, []
    for matrix, (rows, columns), wide, sign, gap in zip(
        row, shapes, widths, signs, gaps, strict=True
    ):
        _draw_numbers(axes, matrix, x, numbers)
        write(axes, x + wide + gap / 2, 0, sign, 11)
        terms += [f"{matrix.name} ({rows} × {columns})", sign]
        x += wide + gap
    product = " ".join(terms).strip()
    axes.figure.set_label(f"{title}: matrices with all numbers, {product}.")
    return axes.figure


def _draw_numbers(axes, matrix, x, numbers):
    """Draws a matrix with its left edge at x and its middle row at 0."""
    name, values, part = matrix
    rows, columns = values.shape
    top, middle = rows * CELL / 2, x + columns * CELL / 2
    colors = color_map(None, signed=True)
    largest = max(np.abs(values).max(), 1e-12)
    for (row, column), value in np.ndenumerate(values):
        fill = colors(0.5 + 0.4 * value / largest)
        cell = Box(x + (column + 0.5) * CELL, top - (row + 0.5) * CELL, CELL, CELL)
        style = {"facecolor": fill, "edgecolor": "white"}
        draw_box(axes, cell, numbers.format(value), ink_on(fill), **style)
    edge = PARTS[part].dark if part else "black"
    frame = Box(middle, 0, columns * CELL, rows * CELL)
    style = {"edgecolor": edge, "linewidth": 2.4 if part else 1.2}
    draw_box(axes, frame, facecolor="none", **style)
    style = {"color": edge, "fontweight": "bold" if part else "normal"}
    write(axes, middle, top + 0.1, name, 11, va="bottom", **style)
    write(axes, middle, -top - 0.1, f"{rows} × {columns}", va="top")


def _draw_head(axes, head, count, sizes):
    """Draws the kernels of a head, its queries, keys and values, and its output."""
    y, n = -head * ROW, head + 1
    for i, part in enumerate("QKV"):
        kernel, projection = f"$W_{{{n}}}^{part}$", f"${part}_{{{n}}}$"
        left = KERNELS + i * NEXT
        _draw_empty(axes, left, y, (UP, ACROSS), part, kernel, sizes[0])
        left = PROJECTIONS + i * NEXT
        _draw_empty(axes, left, y, (count, ACROSS), part, projection, sizes[1])
    draw_arrow(axes, (KERNELS + 1.65, y), (PROJECTIONS - 0.08, y))
    draw_arrow(axes, (PROJECTIONS + 1.65, y), (Z - 0.08, y))
    _draw_empty(axes, Z, y, (count, ACROSS), "Z", f"$Z_{{{n}}}$", sizes[2])


def _draw_output(axes, lowest, count, heads, value_dim, d_model):
    """Draws the concatenation of the heads, times W^O."""
    top, y, turn = lowest - 1.0, lowest - 1.95, Z + 1.5
    brace = [turn - 0.7, turn - 0.6, turn - 0.6, turn - 0.7]
    axes.plot(brace, [0.2, 0.2, lowest - 0.2, lowest - 0.2], "k", linewidth=1)
    way = (turn - 0.6, lowest / 2), (turn, lowest / 2), (turn, top), (0.75, top)
    draw_arrow(axes, *way, (0.75, y + 0.62))
    text = "5. side by side, and times one matrix"
    write(axes, 1.0, top + 0.14, text, 8.5, ha="left")
    for head in range(heads):
        left, name = 0.1 + head * ACROSS * EMPTY, f"$Z_{{{head + 1}}}$"
        right = _draw_empty(axes, left, y, (count, ACROSS), "Z", name)
    below = y - count * EMPTY / 2 - 0.14
    write(axes, (0.1 + right) / 2, below, f"{count} × {heads * value_dim}", 8.5)
    write(axes, right + 0.22, y, "·", 12)
    size = f"{heads * value_dim} × {d_model}"
    right = _draw_empty(axes, right + 0.45, y, (8, 8), None, "$W^O$", size)
    write(axes, right + 0.25, y, "=", 12)
    _draw_empty(axes, right + 0.5, y, (count, 8), "Z", "Z", f"{count} × {d_model}")


def _draw_empty(axes, left, middle, shape, part, name, size=""):
    """Draws a matrix of empty cells with its name and size; returns its right end."""
    shades = PARTS.get(part)
    fill, edge = (shades.light, shades.dark) if shades else ("white", "black")
    rows, columns = shape
    width, height = columns * EMPTY, rows * EMPTY
    box, low = Box(left + width / 2, middle, width, height), middle - height / 2
    draw_box(axes, box, facecolor=fill, edgecolor=edge, linewidth=0.8)
    lines = {"colors": edge, "linewidth": 0.4, "zorder": 2}
    axes.vlines(left + EMPTY * np.arange(1, columns), low, low + height, **lines)
    axes.hlines(low + EMPTY * np.arange(1, rows), left, left + width, **lines)
    write(axes, box.x, low + height + 0.11, name, 8.5, color=edge, parse_math=True)
    write(axes, box.x, low - 0.1, size, 6.5)
    return left + width
