"""Line and bar charts that are readable without colours."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from drawings.canvas import (
    canvas,
    name_axes,
    title_inches,
)
from keras_vanilla.plots.heat_map import checked_table
from keras_vanilla.plots.style import CHARTS, GREY, MAGENTA, name_ticks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES = "-", "--", ":", "-.", (0, (1, 4)), (0, (8, 3))  # of lines
MARKERS = "os^Dvx"
HATCHES = "", "///", "", "...", "xx", "\\\\\\", "---", ""  # of bars
FILLS = MAGENTA, "white", GREY, "white", "white", GREY, "white", "white"
NUMBER_INCHES = 0.4  # width of a number above a bar
NAMED = 10  # a logarithmic axis labels up to this many positions individually
DIRECT = 8  # up to this many lines have their names at their ends
APART = 0.07  # distance between two names, as a share of the height
MARKED = 24  # a line with more points than this has no markers
POINTS = 400  # per line of a learning rate


@style()
def curves(
    x: ArrayLike,
    lines: dict[str, ArrayLike],
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    log_x: bool = False,
    log_y: bool = False,
    axes: "Axes | None" = None,
) -> "Figure":
    """Draws lines over the same x, distinguished by dashes and markers.

    Up to eight lines have their names at their right ends; more are listed in a legend.
    From the seventh line on, markers are hollow.

    Args:
        x: float array (n,).
        lines: dict of name: float array (n,). NaN leaves a gap, as does a number that
            is not positive on a logarithmic axis.
        title: str.
        x_axis: str. Name of x, and its unit.
        y_axis: str. Name of y, and its unit.
        log_x: bool.
        log_y: bool.
        axes: matplotlib Axes to draw in; None creates a figure.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are no lines or `x` is empty, or a line and `x` differ in
            length.
    """
    if not lines or not len(x):
        raise ValueError(
            "Curves need at least one line and one value of `x`. Received: "
            f"{len(lines)} lines, {len(x)} values of `x`"
        )
    for name, y in lines.items():
        if np.shape(y) != np.shape(x):
            raise ValueError(
                f"The line {name!r} must have as many values as `x`, {len(x)}. "
                f"Received: shape {np.shape(y)}"
            )
    if axes is None:
        axes = canvas(width=max(6.4, title_inches(title)))[1][0, 0]
    for i, (name, y) in enumerate(lines.items()):
        hollow, look = divmod(i, len(DASHES))
        color = CHARTS[look % len(CHARTS)]
        axes.plot(
            x,
            y,
            label=_in_legend(name),
            color=color,
            linestyle=DASHES[look],
            marker=MARKERS[look] if hollow or len(x) <= MARKED else None,
            markersize=4,
            markerfacecolor="white" if hollow else color,
            markevery=math.ceil(len(x) / MARKED),
        )
    if log_x:
        axes.set_xscale("log", nonpositive="mask")
        if len(x) <= NAMED:  # the positions instead of powers of ten
            axes.set_xticks(x, [f"{value:g}" for value in x])
            axes.set_xticks([], minor=True)
    else:
        axes.locator_params(axis="x", nbins=6)  # the names at the ends need room
    if log_y:
        axes.set_yscale("log", nonpositive="mask")
    name_axes(axes, title=title, x_axis=x_axis, y_axis=y_axis)
    axes.grid(alpha=0.3)
    if len(lines) > DIRECT:
        axes.legend(fontsize="small", handlelength=3, loc="best")
    elif len(lines) > 1:
        _name_ends(axes)
    return axes.figure


@style()
def bars(
    values: dict[str, float] | dict[str, dict[str, float]],
    *,
    title: str,
    y_axis: str,
    x_axis: str = "",
    numbers: str = "{:.4g}",
    axes: "Axes | None" = None,
) -> "Figure":
    """Draws bars with their numbers above them.

    Args:
        values: dict of name: float; or dict of group: dict of name: float with the same
            names in each group, drawn side by side and distinguished by their filling.
        title: str.
        y_axis: str. Name of the heights, and their unit.
        x_axis: str. Name of the groups.
        numbers: str. Format of the numbers.
        axes: matplotlib Axes to draw in; None creates a figure.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are no bars, or the groups do not have the same names.
    """
    groups = {
        group: heights if isinstance(heights, dict) else {"": heights}
        for group, heights in values.items()
    }
    names = list(next(iter(groups.values()), {}))
    if not names or any(list(heights) != names for heights in groups.values()):
        raise ValueError(
            "Bars need at least one value, and the same names in each group. Received: "
            f"{ {group: list(heights) for group, heights in groups.items()} }"
        )
    if axes is None:
        wide = 0.5 * len(groups) * len(names) + 2
        axes = canvas(width=max(4.0, min(12.0, wide), title_inches(title)))[1][0, 0]
    width = 0.8 / len(names)
    inches = axes.figure.get_figwidth() - 1
    narrow = inches / len(groups) * width < NUMBER_INCHES
    for i, name in enumerate(names):
        drawn = axes.bar(
            np.arange(len(groups)) + (i - (len(names) - 1) / 2) * width,
            [heights[name] for heights in groups.values()],
            width,
            label=_in_legend(name),
            facecolor=FILLS[i % len(FILLS)],
            edgecolor="black",
            hatch=HATCHES[i % len(HATCHES)],
        )
        turned = {"rotation": 90 if narrow else 0}
        axes.bar_label(drawn, fmt=numbers, fontsize="small", padding=2, **turned)
    name_axes(axes, title=title, x_axis=x_axis, y_axis=y_axis)
    name_ticks(axes.xaxis, list(groups), inches)
    axes.margins(y=0.2 if narrow else 0.12)
    if len(names) > 1:
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        axes.legend(fontsize="small", handlelength=3, **beside)
    return axes.figure


@style()
def learning_rate(
    schedules: Callable[[int], float] | dict[str, Callable[[int], float]],
    steps: int,
    *,
    title: str = "Learning rate",
) -> "Figure":
    """Draws learning rates by step.

    Args:
        schedules: function of the number of previous updates, such as a
            `TransformerSchedule`; or dict of name: function.
        steps: int. The last step; the first is 1.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if `steps` is below 1, or there is no schedule.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1. Received: {steps}")
    named = schedules if isinstance(schedules, dict) else {"learning rate": schedules}
    drawn = np.unique(np.linspace(1, steps, POINTS).round().astype("int64"))
    lines = {
        name: np.array([float(schedule(int(step) - 1)) for step in drawn])
        for name, schedule in named.items()
    }
    return curves(drawn, lines, title=title, x_axis="step", y_axis="learning rate")


@style()
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


def _in_legend(name):
    """Changes a name for a legend; matplotlib omits names that begin with "_"."""
    name = name
    return f" {name}" if name.startswith("_") else name


def _name_ends(axes):
    """Writes each line's name beside its last point, without overlaps."""
    axes.autoscale_view()
    to_fraction = axes.transScale + axes.transLimits  # of the width and the height
    ends = []
    for line in axes.get_lines():
        points = np.ma.masked_invalid(to_fraction.transform(line.get_xydata()))
        seen = points[~np.ma.getmaskarray(points).any(axis=1)]
        if len(seen):
            ends.append((line, *seen[-1]))
    ends.sort(key=lambda end: end[2])
    heights = _spread([height for _, _, height in ends])
    within = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
    style = {"va": "center", "fontsize": "small", **within}
    leader = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0}
    leader["relpos"] = 0, 0.5  # it ends at its name and crosses no other
    for (line, x, y), height in zip(ends, heights, strict=True):
        name, leader = line.get_label().strip(), leader | {"color": line.get_color()}
        axes.annotate(name, (x, y), (1.06, height), arrowprops=leader, **style)


def _spread(heights):
    """Moves sorted heights up and down, about as much, to separate them."""
    offsets = APART * np.arange(len(heights))
    apart = np.asarray(heights) - offsets  # names overlap where this decreases
    highest = np.maximum.accumulate(apart)
    lowest = np.minimum.accumulate(apart[::-1])[::-1]
    moved = (highest + lowest) / 2 + offsets
    return np.clip(moved, offsets, 1 - offsets[::-1])  # within the axis
