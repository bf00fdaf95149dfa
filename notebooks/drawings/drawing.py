"""Boxes, texts and arrows, in inches or in the units of axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from drawings.canvas import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 0.16  # height of a line of text in inches
MARGIN = 0.15
PLAIN = "white"


class Box(NamedTuple):
    """A box with its centre and size; arrows join the middles of its sides."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> tuple[float, float]:
        return self.x, self.y + self.height / 2

    @property
    def bottom(self) -> tuple[float, float]:
        return self.x, self.y - self.height / 2

    @property
    def left(self) -> tuple[float, float]:
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y


def plane(
    title: str, width: float, height: float, x: Sequence[float], y: Sequence[float]
) -> "Axes":
    """Creates axes of these limits without frame or ticks, in a figure of that size."""
    axes = canvas(width=width, height=height)[1][0, 0]
    axes.set_axis_off()
    axes.set(xlim=x, ylim=y)
    axes.set_title(title)
    return axes


def write(
    axes: "Axes", x: float, y: float, text: str, size: float | str = 8, **style
) -> None:
    """Writes a text with its centre at (x, y)."""
    style = {"ha": "center", "va": "center", "fontsize": size, "zorder": 3, **style}
    axes.text(x, y, text, **style)


def draw_box(
    axes: "Axes",
    box: Box,
    text: str = "",
    ink: str = "black",
    size: float = 8,
    **style,
) -> None:
    """Draws the rectangle of a box, and a text in it."""
    from matplotlib.patches import Rectangle

    corner = box.left[0], box.bottom[1]
    style = {"edgecolor": "black", "zorder": 2, **style}
    axes.add_patch(Rectangle(corner, box.width, box.height, **style))
    if text:
        write(axes, box.x, box.y, text, size, color=ink, linespacing=1.1)


def draw_arrow(axes: "Axes", *points, **style) -> None:
    """Draws an arrow along straight lines through points to the last one."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    ends = {"arrowstyle": "-|>", "joinstyle": "miter", "capstyle": "butt"}
    style = {"color": "black", "mutation_scale": 9, "zorder": 1, **ends, **style}
    axes.add_patch(FancyArrowPatch(path=Path(points), **style))


def height_of(text: str) -> float:
    """Returns the height in inches of a box for lines of text."""
    return 0.2 + LINE * (text.count("\n") + 1)


class Drawing:
    """Boxes, texts and arrows, which determine the size of the figure.

    The artists' gids are "box", "frame", "arrow" and "text".

    Args:
        title: str.
    """

    def __init__(self, title: str):
        self._figure, axes = canvas()
        self._figure.suptitle(title)
        self._axes = axes[0, 0]
        self._axes.set_axis_off()
        self._corners = []
        self._title = title

    def box(
        self, x: float, y: float, text: str, width: float = 1.9, fill: str = PLAIN
    ) -> Box:
        """Draws a box around lines of text, with its centre at (x, y)."""
        box = Box(x, y, width, height_of(text))
        self._rectangle(box, gid="box", facecolor=fill, linewidth=1)
        self.text(x, y, text)
        return box

    def frame(self, boxes: Sequence[Box], name: str = "", around: float = 0.2) -> None:
        """Draws a dashed frame around boxes, with its name in the upper left corner.

        On the left it is wide enough for the name to stay clear of the arrow above the
        first box.
        """
        left = min(box.left[0] for box in boxes) - around
        left = min(left, boxes[0].x - 0.25 - 0.078 * len(name))
        right = max(box.right[0] for box in boxes) + around
        low = min(box.bottom[1] for box in boxes) - around
        high = max(box.top[1] for box in boxes) + around + 0.2
        box = Box((left + right) / 2, (low + high) / 2, right - left, high - low)
        style = {"facecolor": "none", "linestyle": (0, (4, 3)), "linewidth": 0.8}
        self._rectangle(box, gid="frame", zorder=0, **style)
        self.text(left + 0.08, high - 0.12, name, side="left")

    def text(
        self, x: float, y: float, text: str, side: str = "center", color: str = "black"
    ) -> None:
        """Draws lines of text, with their centre, left or right end at (x, y)."""
        write(self._axes, x, y, text, 9, ha=side, color=color, gid="text")
        width = 0.085 * max(map(len, text.split("\n")))
        shift = {"center": -width / 2, "left": 0, "right": -width}[side]
        self._corners += [(x + shift, y - 0.1), (x + shift + width, y + 0.1)]

    def arrow(self, *points, **style) -> None:
        """Draws an arrow along straight lines through points to the last one."""
        draw_arrow(self._axes, *points, gid="arrow", **style)
        self._corners += points

    def finish(self) -> "Figure":
        """Returns the figure, large enough to show everything."""
        across, up = zip(*self._corners, strict=True)
        left, right = min(across) - MARGIN, max(across) + MARGIN
        low, high = min(up) - MARGIN, max(up) + MARGIN
        self._axes.set(xlim=(left, right), ylim=(low, high), aspect="equal")
        width = max(right - left, 0.11 * len(self._title))
        self._figure.set_size_inches(width + 0.2, high - low + 0.5)
        return self._figure

    def _rectangle(self, box, **style):
        draw_box(self._axes, box, **style)
        self._corners += [(box.left[0], box.bottom[1]), (box.right[0], box.top[1])]
