"""A drawing of multi-head attention, from its input to its output."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla.plots.canvas import canvas, name_picture, shown
from keras_vanilla.plots.palette import PARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.layers import MultiHeadAttention

MOST_HEADS, MOST_TOKENS = 8, 4
CELL = 0.14  # inches, the side of a cell
ACROSS, UP = 3, 4  # cells drawn for the size of a head and for d_model
ROW = 0.86  # inches from head to head
COLUMNS = 0.95, 2.35, 4.3, 6.25  # left ends of X, kernels, projections and Z_i


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
    axes = canvas(width=8.6, height=heads * ROW + 3.6)[1][0, 0]
    axes.set_axis_off()
    axes.set(xlim=(-0.3, 8.1), ylim=(lowest - 2.85, 1.25), aspect="equal")
    name_picture(axes, title)
    x, kernels, projections, z = COLUMNS
    steps = (
        (0.1, "1. one row\nper token"),
        (kernels, "2. times three matrices\nof each head"),
        (projections, "3. queries, keys, values\nof each head"),
        (z - 0.25, "4. attention\nof each head"),
    )
    for left, text in steps:
        _text(axes, left, 0.95, text, "left")
    middle = lowest / 2
    right = _grid(axes, x, middle, count, 8, "X", "X", f"{count} × {width}")
    for row, token in enumerate(tokens):
        up = middle + (count / 2 - row - 0.5) * CELL
        _text(axes, x - 0.08, up, shown(token, longest=11), "right")
    sizes = f"{width} × {key_dim}", f"{count} × {key_dim}", f"{count} × {value_dim}"
    for head in range(heads):
        _arrow(axes, (right + 0.05, middle), (kernels - 0.1, -head * ROW))
        _draw_head(axes, head, count, sizes if head == heads - 1 else ("", "", ""))
    _draw_output(axes, lowest, count, heads, value_dim, d_model)
    axes.figure.alt = (
        f"{title}: X ({count} × {width}) goes to {heads} heads. Each multiplies it by "
        f"its own W^Q, W^K and W^V ({width} × {key_dim}), and its attention gives a "
        f"matrix Z_i ({count} × {value_dim}). The {heads} matrices side by side "
        f"({count} × {heads * value_dim}), times W^O ({heads * value_dim} × "
        f"{d_model}), are Z ({count} × {d_model})."
    )
    return axes.figure


def _draw_head(axes, head, count, sizes):
    """The kernels of a head, its queries, keys and values, and its output."""
    _, kernels, projections, z = COLUMNS
    y, n = -head * ROW, head + 1
    for i, part in enumerate("QKV"):
        name = f"$W_{{{n}}}^{part}$"
        _grid(axes, kernels + i * 0.58, y, UP, ACROSS, part, name, sizes[0])
    _arrow(axes, (kernels + 1.65, y), (projections - 0.08, y))
    for i, part in enumerate("QKV"):
        name = f"${part}_{{{n}}}$"
        _grid(axes, projections + i * 0.58, y, count, ACROSS, part, name, sizes[1])
    _arrow(axes, (projections + 1.65, y), (z - 0.08, y))
    _grid(axes, z, y, count, ACROSS, "Z", f"$Z_{{{n}}}$", sizes[2])


def _draw_output(axes, lowest, count, heads, value_dim, d_model):
    """The concatenation of the heads, times W^O."""
    top, y = lowest - 1.0, lowest - 1.95
    turn = COLUMNS[3] + 1.5
    ends = 0.2, lowest - 0.2
    axes.plot([turn - 0.7, turn - 0.6, turn - 0.6, turn - 0.7], np.repeat(ends, 2), "k")
    axes.plot([turn - 0.6, turn, turn], [lowest / 2, lowest / 2, top], "k")
    for line in axes.lines:
        line.set_linewidth(0.8)
    _arrow(axes, (turn, top), (0.75, top), (0.75, y + 0.62))
    _text(axes, 1.0, top + 0.14, "5. side by side, and times one matrix", "left")
    for head in range(heads):
        left = 0.1 + head * ACROSS * CELL
        right = _grid(axes, left, y, count, ACROSS, "Z", f"$Z_{{{head + 1}}}$", "")
    below = y - count * CELL / 2 - 0.14
    _text(axes, (0.1 + right) / 2, below, f"{count} × {heads * value_dim}")
    _text(axes, right + 0.22, y, "·", size=12)
    start, cells = right + 0.45, 8
    size = f"{heads * value_dim} × {d_model}"
    right = _grid(axes, start, y, cells, cells, None, "$W^O$", size)
    _text(axes, right + 0.25, y, "=", size=12)
    _grid(axes, right + 0.5, y, count, 8, "Z", "Z", f"{count} × {d_model}")


def _grid(axes, left, middle, rows, columns, part, name, size):
    """Draws a matrix of empty cells; returns its end."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    shades = PARTS[part] if part else None
    fill, edge = (shades.light, shades.dark) if part else ("white", "black")
    low, high = middle - rows * CELL / 2, middle + rows * CELL / 2
    right = left + columns * CELL
    style = {"facecolor": fill, "edgecolor": edge, "linewidth": 0.8}
    axes.add_patch(Rectangle((left, low), right - left, high - low, **style))
    lines = [[(x, low), (x, high)] for x in left + CELL * np.arange(1, columns)]
    lines += [[(left, y), (right, y)] for y in low + CELL * np.arange(1, rows)]
    ways = [move for line in lines for move in zip((1, 2), line, strict=True)]
    codes, points = zip(*ways, strict=True)
    inside = PathPatch(Path(points, codes), edgecolor=edge, linewidth=0.4)
    axes.add_patch(inside)
    _text(axes, (left + right) / 2, high + 0.11, name, color=edge)
    if size:
        _text(axes, (left + right) / 2, low - 0.1, size, size=6.5)
    return right


def _text(axes, x, y, text, side="center", color="black", size=8.5):
    style = {"ha": side, "va": "center", "fontsize": size, "color": color}
    axes.text(x, y, text, **style)


def _arrow(axes, *points):
    *way, before, last = points
    if way:
        axes.plot(*zip(*way, before, strict=True), color="black", linewidth=0.8)
    style = {"arrowstyle": "-|>", "linewidth": 0.8, "color": "black"}
    style |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    axes.annotate("", last, before, arrowprops=style)
