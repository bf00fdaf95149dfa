"""Figures of attention as lines between two columns of tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.attention import checked
from keras_vanilla.plots.canvas import (
    canvas,
    name_picture,
    name_places,
    shown,
    title_inches,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINKED = 40  # tokens per column; longer columns are cropped
FAINTEST = 0.05  # links below it are not drawn, unless uniform weights are below it too
NAMED = 6  # links in the alternative text
SAMPLES = 1.0, 0.5, 0.25  # weights of the sample lines below the picture
STYLES = [  # dashes and marker of each head
    ("solid", "o"),
    ((0, (5, 2)), "s"),
    ((0, (1, 1.5)), "^"),
    ((0, (6, 2, 1, 2)), "D"),
]


def attention_links(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    query: int | None = None,
    title: str = "Attention",
    heads: Sequence[str] | None = None,
    x_axis: str = "key",
    y_axis: str = "query",
) -> "Figure":
    """Draws two columns of tokens and a line for each weight between them.

    Larger weights have darker and wider lines. The scale is the same in all pictures;
    sample lines for the weights 1, 0.5 and 0.25 and for a uniform distribution over the
    keys are drawn below. Heads differ by dashes and by the marker at the key.

    If there are more than 40 queries, only those around `query`, or the first ones, are
    shown. If there are more than 40 keys, only those with most of the weight are shown.
    The title mentions this.

    Args:
        weights: float array (T, S) for one head, or (N, T, S) for at most 4 heads.
        queries: sequence of T str, the left column.
        keys: sequence of S str, the right column; None means the queries.
        query: int or None. Draw only the lines of this query; None means all.
        title: str.
        heads: sequence of N str, or None for "head 1", "head 2", ...
        x_axis: str. Name of the right column.
        y_axis: str. Name of the left column.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the weights have a wrong rank, are empty, negative or not finite,
            or have more than 4 heads; if the number of queries, keys or heads does not
            match them; or if `query` is not the index of a query.
    """
    weights, queries, keys, heads = checked(weights, queries, keys, heads)
    _check_links(weights, query, len(queries))
    if query is not None:
        weights = weights * (np.arange(len(queries)) == query)[:, None]
    rows = _rows_shown(len(queries), query)
    columns = _columns_shown(weights[:, rows])
    crops = _crop(rows, len(queries), "queries") + _crop(columns, len(keys), "keys")
    title = "\n".join([title, *crops])
    left, right = _two_columns(queries[rows], keys[columns], title)
    name_picture(left, title)
    weights = weights[:, rows]
    left.set_xlabel(_caption(weights, columns), fontsize="small")
    _name_tokens(left, queries[rows], y_axis)
    _name_tokens(right, keys[columns], x_axis)
    if query is not None:
        _frame(left.get_yticklabels()[query - rows.start])
    weights = weights[:, :, columns]
    _draw_links(left, weights, heads, faintest=min(FAINTEST, 1 / len(keys)))
    _show_samples(left, len(keys))
    left.figure.alt = _in_words(title, weights, queries[rows], keys[columns])
    return left.figure


def _check_links(weights, query, count):
    if len(weights) > len(STYLES):
        raise ValueError(
            f"Links of at most {len(STYLES)} heads can be distinguished. Received: "
            f"{len(weights)} heads; choose some, as in weights[[0, 3]]"
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError(
            "Links are drawn from finite weights of at least 0. Received: weights from "
            f"{weights.min()} to {weights.max()}"
        )
    if query is not None and not 0 <= query < count:
        raise ValueError(
            f"`query` must be the index of one of the {count} queries. "
            f"Received: {query}"
        )


def _rows_shown(count, query):
    first = 0 if query is None else query - MOST_LINKED // 2
    first = max(0, min(first, count - MOST_LINKED))
    return slice(first, min(count, first + MOST_LINKED))


def _columns_shown(weights):
    """Returns the window of keys with most of the weight (N, T, S)."""
    count = weights.shape[-1]
    size = min(count, MOST_LINKED)
    sums = np.concatenate([[0.0], np.cumsum(weights.sum(axis=(0, 1)))])
    first = int(np.argmax(sums[size:] - sums[: count - size + 1]))
    return slice(first, first + size)


def _crop(places, count, what):
    if places.stop - places.start == count:
        return []
    return [f"({what} {places.start} to {places.stop - 1} of {count})"]


def _two_columns(queries, keys, title):
    """Creates axes with the queries on the left side and the keys on the right."""
    rows = max(len(queries), len(keys))
    names = sum(max(len(shown(name)) for name in side) for side in (queries, keys))
    width = max(4.4 + 0.08 * names, title_inches(title))
    left = canvas(width=width, height=1.5 + 0.24 * rows)[1][0, 0]
    right = left.twinx()
    for axes in (left, right):
        axes.set_xlim(0, 1)
        axes.set_xticks([])
        axes.set_ylim(rows - 0.5, -0.5)
        axes.spines[:].set_visible(False)
    return left, right


def _name_tokens(axes, tokens, name):
    axes.set_ylabel(shown(name, longest=None))
    name_places(axes.yaxis, tokens, axes.figure.get_figheight())
    axes.tick_params(axis="y", length=0)


def _frame(label):
    label.set_bbox({"facecolor": "none", "edgecolor": "black", "pad": 1.5})


def _caption(weights, columns):
    """Describes the largest weight, and the weight of the omitted keys."""
    caption = f"largest weight {weights[:, :, columns].max():.2f}"
    left_out = 1 - weights[:, :, columns].sum() / max(weights.sum(), 1e-12)
    if columns.stop - columns.start == weights.shape[-1]:
        return caption
    return f"{caption}; keys not shown hold {left_out:.0%} of the weight"


def _in_words(title, weights, queries, keys):
    """Describes the strongest links with their weights."""
    strongest = np.argsort(weights, axis=None)[::-1][:NAMED]
    links = []
    for place in strongest:
        head, row, column = np.unravel_index(place, weights.shape)
        if (weight := weights[head, row, column]) > 0:
            links.append(f"{queries[row]} to {keys[column]} {weight:.2f}")
    return (
        f"{title}: lines from {len(queries)} to {len(keys)} tokens. {'; '.join(links)}"
    )


def _draw_links(axes, weights, heads, faintest):
    """Draws the lines of each head, the faintest first; heads are slightly shifted."""
    places = (np.arange(len(weights)) - (len(weights) - 1) / 2) * 0.18
    for head, place, style, name in zip(weights, places, STYLES, heads, strict=False):
        dashes, marker = style
        rows, columns = np.nonzero(head >= faintest)
        order = np.argsort(head[rows, columns])
        for row, column in zip(rows[order], columns[order], strict=True):
            axes.plot(
                (0.01, 0.99),
                (row + place, column + place),
                linestyle=dashes,
                marker=marker,
                markevery=[1],
                markersize=2 + 4 * min(1.0, head[row, column]),
                zorder=2 + head[row, column],
                clip_on=False,
                **_strength(head[row, column]),
            )
        axes.plot([], [], "k", linestyle=dashes, marker=marker, label=shown(name))
    if len(weights) > 1:
        _name_heads(axes, heads)


def _strength(weight):
    """Returns the style of a line for a weight; all weights above 1 look the same."""
    weight = min(1.0, weight)
    return {"color": str(0.82 * (1 - weight)), "linewidth": 0.4 + 3.2 * weight}


def _show_samples(axes, count):
    """Draws sample lines in a row below the picture."""
    from matplotlib.lines import Line2D

    samples = {f"{weight:g}": weight for weight in SAMPLES}
    samples[f"{1 / count:.2g} (all alike)"] = 1 / count
    handles = [
        Line2D([], [], label=name, **_strength(weight))
        for name, weight in samples.items()
    ]
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.4 / axes.figure.get_figheight()),
        ncols=len(handles),
        frameon=False,
        fontsize="x-small",
        handlelength=1.5,
        columnspacing=1.0,
        title="weight",
        title_fontsize="x-small",
    )


def _name_heads(axes, heads):
    axes.figure.legend(
        loc="outside lower center",
        ncols=2,
        handlelength=4,
        fontsize="small",
    )
