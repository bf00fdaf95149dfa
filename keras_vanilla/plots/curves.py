"""Lines and bars that are told apart without colours."""

import itertools
import math

import numpy as np

from keras_vanilla.plots.canvas import (
    canvas,
    fonts_for,
    name_axes,
    name_places,
    shown,
    title_inches,
)

DARK, MIDDLE, LIGHT = "#08306b", "#c05a00", "#8a8a8a"
LINES = [  # dashes, marker, colour
    ("-", "o", DARK),
    ("--", "s", MIDDLE),
    (":", "^", "black"),
    ("-.", "D", LIGHT),
    ((0, (1, 4)), "v", DARK),
    ((0, (8, 3)), "x", MIDDLE),
]
FILLS = [
    (DARK, ""),
    ("white", "///"),
    (LIGHT, ""),
    ("white", "..."),
    ("white", "xx"),
    (LIGHT, "\\\\\\"),
    ("white", "---"),
    ("white", ""),
]
NUMBER_INCHES = 0.4  # of a bar that its number takes
NAMED = 10  # places of a logarithmic axis that are all named, if no more
MARKED = 24  # a line with more points than this has no markers


def curves(
    x,
    lines,
    *,
    title,
    x_axis,
    y_axis,
    log_x=False,
    log_y=False,
    axes=None,
):
    """Draws lines over the same places, told apart by dashes and markers.

    From the seventh line on markers are hollow.

    Args:
        x: float array (n,).
        lines: dict of name: float array (n,). NaN leaves a gap, and so does what is
            not above 0 on a logarithmic axis.
        title: str.
        x_axis: str. What x is, and its unit.
        y_axis: str. What y is, and its unit.
        log_x: bool.
        log_y: bool.
        axes: matplotlib Axes to draw in; None makes a figure.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there is no line or no place, or a line has not as many values
            as `x`.
    """
    _check_lines(x, lines)
    if axes is None:
        axes = canvas(width=max(6.4, title_inches(title)))[1][0, 0]
    for i, (name, y) in enumerate(lines.items()):
        dashes, marker, color = LINES[i % len(LINES)]
        hollow = i >= len(LINES)
        axes.plot(
            x,
            y,
            label=_in_legend(name),
            color=color,
            linestyle=dashes,
            marker=marker if hollow or len(x) <= MARKED else None,
            markersize=4,
            markerfacecolor="white" if hollow else color,
            markevery=math.ceil(len(x) / MARKED),
        )
    _scale(axes, x, log_x, log_y)
    name_axes(axes, title=title, x_axis=x_axis, y_axis=y_axis)
    axes.grid(alpha=0.3)
    _name_them(axes, lines, loc="best")
    return axes.figure


def _check_lines(x, lines):
    if not lines or not len(x):
        raise ValueError(
            "Curves need at least one line and one place. Received: "
            f"{len(lines)} lines, {len(x)} places"
        )
    for name, y in lines.items():
        if np.shape(y) != np.shape(x):
            raise ValueError(
                f"The line {name!r} must have as many values as `x`, {len(x)}. "
                f"Received: shape {np.shape(y)}"
            )


def bars(values, *, title, y_axis, x_axis="", numbers="{:.4g}", axes=None):
    """Draws bars with their numbers above them.

    Args:
        values: dict of name: float; or of group: dict of name: float, the same names in
            each group, drawn side by side and told apart by their filling.
        title: str.
        y_axis: str. What the heights are, and their unit.
        x_axis: str. What the groups are.
        numbers: str. The format of the numbers.
        axes: matplotlib Axes to draw in; None makes a figure.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there is no bar, or the groups do not have the same names.
    """
    groups = {
        group: heights if isinstance(heights, dict) else {"": heights}
        for group, heights in values.items()
    }
    names = list(next(iter(groups.values()), {}))
    if not names or any(list(heights) != names for heights in groups.values()):
        raise ValueError(
            "Bars need at least one, and the same names in each group. Received: "
            f"{ {group: list(heights) for group, heights in groups.items()} }"
        )
    if axes is None:
        wide = 0.5 * len(groups) * len(names) + 2
        axes = canvas(width=max(4.0, min(12.0, wide), title_inches(title)))[1][0, 0]
    width = 0.8 / len(names)
    inches = axes.figure.get_figwidth() - 1
    narrow = inches / len(groups) * width < NUMBER_INCHES
    for i, (name, fill) in enumerate(zip(names, itertools.cycle(FILLS), strict=False)):
        color, hatch = fill
        drawn = axes.bar(
            np.arange(len(groups)) + (i - (len(names) - 1) / 2) * width,
            [heights[name] for heights in groups.values()],
            width,
            label=_in_legend(name),
            facecolor=color,
            edgecolor="black",
            hatch=hatch,
        )
        axes.bar_label(
            drawn,
            fmt=numbers,
            fontsize="small",
            padding=2,
            rotation=90 if narrow else 0,
        )
    name_axes(axes, title=title, x_axis=x_axis, y_axis=y_axis)
    name_places(axes.xaxis, list(groups), inches)
    axes.margins(y=0.2 if narrow else 0.12)
    _name_them(axes, names, loc="upper left", bbox_to_anchor=(1, 1))  # not on a bar
    return axes.figure


def _in_legend(name):
    """A name that matplotlib does not leave out, as it does those that begin with _."""
    name = shown(name, longest=None)
    return f" {name}" if name.startswith("_") else name


def _scale(axes, x, log_x, log_y):
    if log_x:
        axes.set_xscale("log", nonpositive="mask")
        if len(x) <= NAMED:  # the places themselves, instead of powers of ten
            axes.set_xticks(x, [f"{place:g}" for place in x])
            axes.set_xticks([], minor=True)
    if log_y:
        axes.set_yscale("log", nonpositive="mask")


def _name_them(axes, names, **place):
    if len(names) > 1:
        fonts = {"family": fonts_for(list(names)), "size": "small"}
        axes.legend(prop=fonts, handlelength=3, **place)
