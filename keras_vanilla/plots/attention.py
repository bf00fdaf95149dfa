"""Tables of attention weights and masks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.heat_map import heat_map, heat_maps
from keras_vanilla.plots.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERED = 40  # masks with at most this many rows and columns show numbers


def attention_map(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    title: str = "Attention weights",
    heads: Sequence[str] | None = None,
    x_axis: str = "key",
    y_axis: str = "query",
    numbers: bool | str | None = None,
    part: str | None = None,
    columns: int = 4,
) -> "Figure":
    """Draws attention weights as tables, with darker cells for larger weights.

    Args:
        weights: float array (T, S) for one head, or (N, T, S) for a grid of all heads.
        queries: sequence of T str, the names of the rows.
        keys: sequence of S str, the names of the columns; None means the queries.
        title: str.
        heads: sequence of N str, or None for "head 1", "head 2", ...
        x_axis: str. Name of the columns.
        y_axis: str. Name of the rows.
        numbers: as in `heat_map`; None shows them in a small table of one head.
        part: "encoder", "decoder", "memory" or None. The part of the model that
            attends, which determines the colour.
        columns: int. Number of heads side by side.
    Returns:
        A matplotlib Figure. If there is no room for all names, only some are written.
    Raises:
        ValueError: if the weights have a wrong rank or are empty, or the number of
            queries, keys or heads does not match them.
    """
    weights, queries, keys, heads = _checked(weights, queries, keys, heads)
    largest = np.max(weights, where=np.isfinite(weights), initial=0)
    style = {"title": title, "x_axis": x_axis, "y_axis": y_axis, "unit": "weight"}
    style |= {"part": part, "limits": (0.0, largest or 1.0), "numbers": numbers}
    if len(weights) == 1:
        return heat_map(weights[0], keys, queries, **style)
    style["numbers"] = numbers or False
    return heat_maps(weights, heads, keys, queries, columns=columns, **style)


@style()
def mask_table(
    mask: ArrayLike,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    title: str = "Mask",
    x_axis: str = "key",
    y_axis: str = "query",
) -> "Figure":
    """Draws a mask, with dark cells (1) where attention is allowed.

    Args:
        mask: array (T, S) of bool, or of zeros and ones. True = may attend.
        queries: sequence of T str, or None for 0, 1, 2, ...
        keys: sequence of S str, or None for 0, 1, 2, ...
        title: str.
        x_axis: str. Name of the columns.
        y_axis: str. Name of the rows.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the mask is not a table of booleans, or the number of names does
            not match it.
    """
    from matplotlib.patches import Patch

    mask = np.asarray(mask)
    if mask.ndim != 2 or not mask.size or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            "A mask is drawn from a table (queries, keys) of true and false. Received: "
            f"shape {mask.shape}, dtype {mask.dtype}"
        )
    queries, keys = (
        [str(i) for i in range(count)] if names is None else list(names)
        for names, count in zip((queries, keys), mask.shape, strict=True)
    )
    numbers = "{:.0f}" if max(mask.shape) <= NUMBERED else False
    names = {"title": title, "x_axis": x_axis, "y_axis": y_axis}
    figure = heat_map(mask, keys, queries, limits=(0, 1), numbers=numbers, **names)
    color = figure.axes[0].images[0].to_rgba
    figure.legend(
        handles=[
            Patch(facecolor=color(value), edgecolor="black", label=meaning)
            for value, meaning in ((1, "may attend"), (0, "may not"))
        ],
        loc="outside lower center",
        ncols=2,
    )
    return figure


def _checked(weights, queries, keys, heads):
    """Returns weights (N, T, S), and the names of queries, keys and heads."""
    weights = np.asarray(weights, dtype="float64")
    if weights.ndim not in (2, 3) or not weights.size:
        raise ValueError(
            "Attention is drawn from weights (T, S) or (heads, T, S) of one text, with "
            f"at least one token on each side. Received: shape {weights.shape}"
        )
    weights = weights.reshape((-1, *weights.shape[-2:]))
    queries = list(queries)
    keys = queries if keys is None else list(keys)
    if heads is None:
        heads = [f"head {i + 1}" for i in range(len(weights))]
    names = len(heads), len(queries), len(keys)
    if names != weights.shape:
        counted = "{} heads, {} queries and {} keys".format
        raise ValueError(
            f"Weights of {counted(*weights.shape)} need as many names. Received: names "
            f"of {counted(*names)}"
        )
    return weights, queries, keys, list(heads)
