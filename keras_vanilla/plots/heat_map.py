"""Tables of numbers as coloured cells, with darker cells for larger numbers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.canvas import (
    canvas,
    name_axes,
    name_inches,
    name_ticks,
    title_inches,
)
from keras_vanilla.plots.drawing import write
from keras_vanilla.plots.palette import color_map, ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMBER_INCHES = 0.08  # width of a digit in a cell
FEW = 12  # tables with at most this many rows and columns show numbers
SQUARE = 40  # tables with at most this many rows and columns have square cells
CELL_INCHES = 0.42, 0.8  # minimum and maximum side of a square cell


def heat_map(
    values: ArrayLike,
    x_labels: Sequence[str] | None = None,
    y_labels: Sequence[str] | None = None,
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    unit: str | None = None,
    limits: tuple[float, float] | None = None,
    numbers: bool | str | None = None,
    part: str | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """Draws a table (rows, columns) of numbers, with darker cells for larger numbers.

    If there are numbers above and below 0, those above are magenta, those below are
    lime, and 0 is white; darker cells are farther from 0. Cells that are NaN or
    infinite are white with a cross.

    Args:
        values: float or bool array (rows, columns).
        x_labels: sequence of str or None. Names of the columns.
        y_labels: sequence of str or None. Names of the rows.
        title: str.
        x_axis: str. Name of the columns.
        y_axis: str. Name of the rows.
        unit: str or None. Unit of the numbers; without it, no scale is drawn.
        limits: pair of floats or None. The lightest and the darkest value. None means
            the smallest and the largest value, or limits symmetric about 0 if it is
            between them.
        numbers: bool, str or None. Whether to write each number into its cell, or its
            format; None writes them in small tables if they fit.
        part: a name of `palette.PARTS` or None. Part of the model, for the colour.
        axes: matplotlib Axes to draw in; None creates a figure.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the table is not two-dimensional or is empty, or labels do not
            match it.
    """
    values = checked_table(values)
    labels = ("y_labels", y_labels, "rows"), ("x_labels", x_labels, "columns")
    for (name, axis_labels, what), count in zip(labels, values.shape, strict=True):
        if axis_labels is not None and len(axis_labels) != count:
            raise ValueError(
                f"`{name}` must name each of the {count} {what}. Received: "
                f"{len(axis_labels)} names"
            )
    if axes is None:
        width, height = _inches(values.shape)
        beside, below = name_inches(y_labels), name_inches(x_labels)
        wide = max(width + beside + 1.6, title_inches(title))
        axes = canvas(width=wide, height=height + below + 1.2)[1][0, 0]
    else:
        width, height = axes.get_window_extent().size / axes.figure.dpi
    name_axes(axes, title=title, x_axis=x_axis, y_axis=y_axis)
    image = _image(axes, values, limits, part)
    if x_labels is not None:
        name_ticks(axes.xaxis, x_labels, width)
    if y_labels is not None:
        name_ticks(axes.yaxis, y_labels, height)
    _write_numbers(axes, image, values, numbers, width / values.shape[1])
    if unit is not None:
        axes.figure.colorbar(image, ax=axes, label=unit, shrink=0.8)
    return axes.figure


def heat_maps(
    values: ArrayLike,
    titles: Sequence[str],
    x_labels: Sequence[str] | None = None,
    y_labels: Sequence[str] | None = None,
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    unit: str | None = None,
    limits: tuple[float, float] | None = None,
    numbers: bool | str | None = False,
    part: str | None = None,
    columns: int = 4,
) -> "Figure":
    """Draws tables of the same shape side by side, on the same scale.

    Args:
        values: float array (tables, rows, columns).
        titles: sequence of str. Titles of the tables.
        x_labels: as in `heat_map`.
        y_labels: as in `heat_map`; written once per row of tables.
        title: str. Title of the figure.
        x_axis: str. Name of the columns; written below the lowest tables.
        y_axis: str. Name of the rows.
        unit: as in `heat_map`; there is one scale for all.
        limits: as in `heat_map`; None means those of all tables together.
        numbers: as in `heat_map`.
        part: as in `heat_map`.
        columns: int. Number of tables side by side.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are no tables, the number of titles differs, the shapes of
            the tables differ, `columns` is below 1, or as in `heat_map`.
    """
    tables = _tables(values, titles, columns)
    columns = min(columns, len(tables))
    figure, grid = _grid(tables, columns, x_labels, y_labels, title)
    limits = _limits(tables) if limits is None else limits
    style = {"limits": limits, "numbers": numbers, "part": part}
    for i, (table, name, axes) in enumerate(zip(tables, titles, grid, strict=False)):
        below = x_axis if i + columns >= len(tables) else ""
        beside, labels = ("", None) if i % columns else (y_axis, y_labels)
        names = {"title": name, "x_axis": below, "y_axis": beside}
        heat_map(table, x_labels, labels, axes=axes, **names, **style)
        if i % columns:
            axes.set_yticks([])
    for axes in grid[len(tables) :]:
        axes.set_axis_off()
    if unit is not None:
        figure.colorbar(grid[0].images[0], ax=list(grid), label=unit, shrink=0.8)
    return figure


def checked_table(values: ArrayLike) -> np.ndarray:
    """Returns numbers as a float64 array (rows, columns).

    Raises:
        ValueError: if they are not a table of at least one row and one column.
    """
    values = np.asarray(values, dtype="float64")
    if values.ndim != 2 or not values.size:
        raise ValueError(
            "The numbers must be a table of at least one row and one column. "
            f"Received: shape {values.shape}"
        )
    return values


def _grid(tables, columns, x_labels, y_labels, title):
    """Creates a figure with room for tables and names, and at least as many axes."""
    rows = math.ceil(len(tables) / columns)
    width, height = (
        max(1.2, min(inches, 7.2 / columns - 0.2))  # at most about a page together
        for inches in _inches(tables[0].shape)
    )
    width = columns * (width + 0.5) + 1 + name_inches(y_labels)
    height = rows * (height + 0.7 + name_inches(x_labels)) + 0.6
    figure, grid = canvas(rows, columns, width=width, height=height, title=title)
    figure.set_layout_engine("compressed")  # square cells leave room beside them
    return figure, grid.ravel()


def _tables(values, titles, columns):
    if columns < 1:
        raise ValueError(f"`columns` must be at least 1. Received: {columns}")
    if not len(values) or len(values) != len(titles):
        raise ValueError(
            "There must be at least one table, and a title for each. Received: "
            f"{len(values)} tables, {len(titles)} titles"
        )
    tables = [checked_table(table) for table in values]
    if len(shapes := {table.shape for table in tables}) > 1:
        raise ValueError(
            "Tables side by side must have one shape. Received: "
            f"{', '.join(map(str, sorted(shapes)))}"
        )
    return np.stack(tables)


def _inches(shape):
    """Returns width and height of a table in inches, at most 12 each."""
    rows, columns = shape
    if max(shape) <= SQUARE:
        cell = np.clip(2.4 / max(shape), *CELL_INCHES)
        cell = min(cell, 12.0 / max(shape))
        return cell * columns, cell * rows
    return min(12.0, max(2.4, 0.42 * columns)), min(12.0, max(1.6, 0.32 * rows))


def _limits(values):
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if low == high:  # a single value is dark
        low, high = min(low, 0.0), max(high, 0.0)
    if low < 0 < high:
        low, high = -max(-low, high), max(-low, high)
    return (low, high) if low < high else (0.0, 1.0)


def _image(axes, values, limits, part):
    low, high = _limits(values) if limits is None else limits
    image = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=color_map(part, signed=low < 0 < high),
        vmin=low,
        vmax=high,
        aspect="equal" if max(values.shape) <= SQUARE else "auto",
        interpolation="nearest",
    )
    rows, columns = np.nonzero(~np.isfinite(values))
    axes.scatter(columns, rows, marker="x", color="0.4", s=20, linewidths=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)  # there is no row 2.5
    down, across = values.shape  # crosses at the edge would widen the limits
    axes.set(xlim=(-0.5, across - 0.5), ylim=(down - 0.5, -0.5))
    return image


def _write_numbers(axes, image, values, numbers, inches):
    pattern = numbers if isinstance(numbers, str) else "{:.2f}"
    if numbers is None:
        longest = max(len(pattern.format(value)) for value in values.flat)
        numbers = max(values.shape) <= FEW and NUMBER_INCHES * longest < inches
    if not numbers:
        return
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            ink = ink_on(image.to_rgba(value))
            write(axes, column, row, pattern.format(value), "small", color=ink)
