"""Empty figures in the style of `keras_vanilla.plots`, and their titles."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def canvas(
    rows: int = 1, columns: int = 1, *, width: float = 6.4, height: float = 4.0
) -> tuple[Figure, np.ndarray]:
    """Creates a figure of some inches, and an object array (rows, columns) of axes."""
    figure = Figure((width, height))
    return figure, figure.subplots(rows, columns, squeeze=False)


def name_axes(axes: "Axes", *, title: str, x_axis: str, y_axis: str) -> None:
    """Writes a title and the names of the axes."""
    axes.set(title=title, xlabel=x_axis, ylabel=y_axis)


def title_inches(title: str) -> float:
    """Returns the width in inches that a figure needs for its title."""
    return 0.09 * max(map(len, title.split("\n"))) + 0.6
