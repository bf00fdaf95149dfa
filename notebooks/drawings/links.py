"""Attention weights as lines between two columns of tokens."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from keras_vanilla.plots.style import name_ticks, shown, style

FAINTEST = 0.05  # links below it are not drawn, unless uniform weights are below it too
NAMED = 6  # links in the alternative text
SAMPLES = 1.0, 0.5, 0.25  # weights of the sample lines below the picture


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
) -> Figure:
    """Draws two columns of tokens and a line for each weight between them.

    Larger weights have darker and wider lines. The scale is the same in all pictures;
    sample lines for the weights 1, 0.5 and 0.25 and for a uniform distribution over the
    keys are drawn below.

    Args:
        weights: float array (T, S) or (1, T, S). The weights of one head.
        queries: sequence of T str, the left column.
        keys: sequence of S str, the right column; None means the queries.
        query: int or None. Draw only the lines of this query; None means all.
        title: str.
        x_axis: str. Name of the right column.
        y_axis: str. Name of the left column.
    Returns:
        A matplotlib Figure.
    """
    queries = list(queries)
    keys = queries if keys is None else list(keys)
    weights = np.reshape(np.asarray(weights, "float64"), (len(queries), len(keys)))
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


def _strength(weight):
    """Returns the style of a line for a weight; all weights above 1 look the same."""
    weight = min(1.0, weight)
    grey, width = str(0.82 * (1 - weight)), 0.4 + 3.2 * weight
    return {"color": grey, "linewidth": width, "linestyle": "-"}
