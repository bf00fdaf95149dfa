"""Figures of attention weights and masks: tables, and lines between tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.heat_map import heat_map, heat_maps
from keras_vanilla.plots.style import name_ticks, shown, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERED = 40  # masks with at most this many rows and columns show numbers
MOST_LINKED = 40  # tokens per column
FAINTEST = 0.05  # links below it are not drawn, unless uniform weights are below it too
NAMED = 6  # links in the alternative text
SAMPLES = 1.0, 0.5, 0.25  # weights of the sample lines below the picture


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


@style()
def attention_links(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    query: int | None = None,
    title: str = "Attention",
    x_axis: str = "key",
    y_axis: str = "query",
) -> "Figure":
    """Draws two columns of tokens and a line for each weight between them.

    Larger weights have darker and wider lines. The scale is the same in all pictures;
    sample lines for the weights 1, 0.5 and 0.25 and for a uniform distribution over the
    keys are drawn below.

    Args:
        weights: float array (T, S) or (1, T, S). The weights of one head.
        queries: sequence of T str, at most 40. The left column.
        keys: sequence of S str, at most 40, the right column; None means the queries.
        query: int or None. Draw only the lines of this query; None means all.
        title: str.
        x_axis: str. Name of the right column.
        y_axis: str. Name of the left column.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the weights have a wrong rank, are empty, negative or not finite,
            or of several heads; if the number of queries or keys does not match them or
            is above 40; or if `query` is not the index of a query.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    weights, queries, keys, _ = _checked(weights, queries, keys, None)
    _check_links(weights, query)
    weights = weights[0]
    if query is not None:
        weights = weights * (np.arange(len(queries)) == query)[:, None]
    rows = max(len(queries), len(keys))
    letters = sum(max(len(shown(name)) for name in side) for side in (queries, keys))
    figure = Figure((4.4 + 0.08 * letters, 1.5 + 0.24 * rows))
    left = figure.subplots()
    left.set_title(title, wrap=True)
    right = left.twinx()
    for axes, tokens, name in ((left, queries, y_axis), (right, keys, x_axis)):
        axes.set(xlim=(0, 1), xticks=[], ylim=(rows - 0.5, -0.5), ylabel=name)
        axes.spines[:].set_visible(False)
        name_ticks(axes.yaxis, tokens, figure.get_figheight())
        axes.tick_params(axis="y", length=0)
    left.set_xlabel(f"largest weight {weights.max():.2f}", fontsize="small")
    if query is not None:
        frame = {"facecolor": "none", "edgecolor": "black", "pad": 1.5}
        left.get_yticklabels()[query].set_bbox(frame)
    faintest_first = np.argsort(weights, axis=None)
    order = np.stack(np.unravel_index(faintest_first, weights.shape), axis=1)
    for row, column in order:
        weight = weights[row, column]
        if weight >= min(FAINTEST, 1 / len(keys)):
            look = {"marker": "o", "markevery": [1], "zorder": 2 + weight}
            look |= {"markersize": 2 + 4 * min(1.0, weight), "clip_on": False}
            left.plot((0.01, 0.99), (row, column), **look, **_strength(weight))
    samples = {f"{weight:g}": weight for weight in SAMPLES}
    samples[f"{1 / len(keys):.2g} (all alike)"] = 1 / len(keys)
    figure.legend(
        handles=[
            Line2D([], [], label=name, **_strength(weight))
            for name, weight in samples.items()
        ],
        loc="outside lower center",
        ncols=len(samples),
        frameon=False,
        handlelength=1.5,
        title="weight",
    )
    links = [
        f"{queries[row]} to {keys[column]} {weights[row, column]:.2f}"
        for row, column in order[: -NAMED - 1 : -1]
        if weights[row, column] > 0
    ]
    counts = f"lines from {len(queries)} to {len(keys)} tokens"
    figure.set_label(f"{title}: {counts}. {'; '.join(links)}")  # in words
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


def _check_links(weights, query):
    heads, *counts = weights.shape
    if heads > 1 or max(counts) > MOST_LINKED:
        raise ValueError(
            f"Links are drawn for one head and at most {MOST_LINKED} queries and keys; "
            "choose some, as in weights[3, :20, :20]. Received: weights of shape "
            f"{weights.shape}"
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError(
            "Links are drawn from finite weights of at least 0. Received: weights from "
            f"{weights.min()} to {weights.max()}"
        )
    if query is not None and not 0 <= query < counts[0]:
        raise ValueError(
            f"`query` must be the index of one of the {counts[0]} queries. "
            f"Received: {query}"
        )


def _strength(weight):
    """Returns the style of a line for a weight; all weights above 1 look the same."""
    weight = min(1.0, weight)
    grey, width = str(0.82 * (1 - weight)), 0.4 + 3.2 * weight
    return {"color": grey, "linewidth": width, "linestyle": "-"}
