"""Tables of numbers as coloured cells, with darker cells for larger numbers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keras_vanilla.plots.style import color_map, ink_on, name_inches, name_ticks, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBER_INCHES = 0.08  # width of a digit in a cell
FEW = 12  # tables with at most this many rows and columns show numbers
SQUARE = 40  # tables with at most this many rows and columns have square cells
CELL_INCHES = 0.42, 0.8  # minimum and maximum side of a square cell
LARGEST = 8.0, 6.0  # inches of a table
PAGE = 7.2  # inches of tables side by side


def heat_map(
    values: ArrayLike,
    x_labels: Sequence[str] | None = None,
    y_labels: Sequence[str] | None = None,
    *,
    title: str,
    numbers: bool | str | None = None,
    **settings: Any,
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
        numbers: bool, str or None. Whether to write each number into its cell, or its
            format; None writes them in small tables if they fit.
        **settings: `x_axis`, `y_axis`, `unit`, `limits` and `part`, as in `heat_maps`.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the table is not two-dimensional or is empty, or labels do not
            match it.
    """
    tables, titles = [checked_table(values)], [title]
    settings |= {"title": None, "numbers": numbers, "columns": 1}
    return heat_maps(tables, titles, x_labels, y_labels, **settings)


@style()
def heat_maps(
    values: ArrayLike,
    titles: Sequence[str],
    x_labels: Sequence[str] | None = None,
    y_labels: Sequence[str] | None = None,
    *,
    title: str | None,
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
        title: str or None. Title of the figure.
        x_axis: str. Name of the columns; written below the lowest tables.
        y_axis: str. Name of the rows.
        unit: str or None. Unit of the numbers; without it, no scale is drawn.
        limits: pair of floats or None. The lightest and the darkest value. None means
            the smallest and the largest value, or limits symmetric about 0 if it is
            between them.
        numbers: as in `heat_map`.
        part: "encoder", "decoder", "memory", "X", "Q", "K", "V", "Z" or None. Part of
            the model, for the colour.
        columns: int. Number of tables side by side.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are no tables, the number of titles differs, the shapes of
            the tables differ, `columns` is below 1, or as in `heat_map`.
    """
    from matplotlib.figure import Figure

    tables = _checked(values, titles, columns, x_labels, y_labels)
    low, high = _limits(tables) if limits is None else limits
    look = {"vmin": low, "vmax": high, "cmap": color_map(part, low < 0 < high)}
    columns = min(columns, len(tables))
    rows = math.ceil(len(tables) / columns)
    width, height = _inches(tables[0].shape)
    if len(tables) > 1:
        width, height = (
            np.clip(side, 1.2, PAGE / columns - 0.2) for side in (width, height)
        )
    beside, below = name_inches(y_labels), name_inches(x_labels)
    size = (
        max(columns * (width + 0.5) + 1.1 + beside, 3.6),
        rows * (height + 0.7 + below) + 0.6,
    )
    figure = Figure(size)
    figure.set_layout_engine("compressed")  # square cells leave room beside them
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, (table, axes) in enumerate(zip(tables, grid, strict=False)):
        image = _draw(axes, table, numbers, width / table.shape[1], look)
        axes.set_title(titles[i], wrap=True)
        axes.set_xlabel(x_axis if i + columns >= len(tables) else "")
        axes.set_ylabel("" if i % columns else y_axis)
        if x_labels is not None:
            name_ticks(axes.xaxis, x_labels, width)
        if i % columns:
            axes.set_yticks([])
        elif y_labels is not None:
            name_ticks(axes.yaxis, y_labels, height)
    for axes in grid[len(tables) :]:
        axes.set_axis_off()
    if title is not None:
        figure.suptitle(title, wrap=True)
    if unit is not None:
        figure.colorbar(image, ax=list(grid), label=unit, shrink=0.8)
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


def _checked(values, titles, columns, x_labels, y_labels):
    """Returns the tables as one array."""
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
    labels = ("y_labels", y_labels, "rows"), ("x_labels", x_labels, "columns")
    for (name, names, what), count in zip(labels, *shapes, strict=True):
        if names is not None and len(names) != count:
            raise ValueError(
                f"`{name}` must name each of the {count} {what}. Received: "
                f"{len(names)} names"
            )
    return np.stack(tables)


def _inches(shape):
    """Returns width and height of a table in inches."""
    rows, columns = shape
    if max(shape) <= SQUARE:
        cell = np.clip(2.4 / max(shape), *CELL_INCHES)
        cell = min(cell, LARGEST[0] / columns, LARGEST[1] / rows)
        return cell * columns, cell * rows
    width, height = (0.42 * columns, 0.32 * rows)
    return np.clip(width, 2.4, LARGEST[0]), np.clip(height, 1.6, LARGEST[1])


def _limits(values):
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if low == high:  # a single value is dark
        low, high = min(low, 0.0), max(high, 0.0)
    if low < 0 < high:
        low, high = -max(-low, high), max(-low, high)
    return (low, high) if low < high else (0.0, 1.0)


def _draw(axes, values, numbers, inches, look):
    """Draws a table whose cells are so many inches wide; returns the image."""
    aspect = "equal" if max(values.shape) <= SQUARE else "auto"
    image = axes.imshow(np.ma.masked_invalid(values), aspect=aspect, **look)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)  # there is no row 2.5
    pattern = numbers if isinstance(numbers, str) else "{:.2f}"
    if numbers is None:
        longest = max(len(pattern.format(value)) for value in values.flat)
        numbers = max(values.shape) <= FEW and NUMBER_INCHES * longest < inches
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            axes.text(column, row, "×", ha="center", va="center", color="0.4")
        elif numbers:
            ink = {"color": ink_on(image.to_rgba(value)), "fontsize": "small"}
            axes.text(
                column, row, pattern.format(value), ha="center", va="center", **ink
            )
    return image
