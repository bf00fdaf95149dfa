"""Empty figures, names along their axes, and the fonts that can show them."""

import functools
import math
import unicodedata
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla._checks import extra_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

LONGEST_NAME = 24  # characters
NAME_INCHES = 0.15  # along an axis, per name
FIRST_FONT = "DejaVu Sans"  # comes with matplotlib
LAST_FONT = "Last Resort High-Efficiency"  # from matplotlib; shows only boxes


def canvas(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = 6.4,
    height: float = 4.0,
    title: str | None = None,
) -> tuple["Figure", np.ndarray]:
    """Creates an empty figure that needs no display, and its axes.

    Args:
        rows: int.
        columns: int.
        width: float. Inches; increased if the title needs more.
        height: float. Inches.
        title: str or None. Title of the whole figure.
    Returns:
        A Picture, which is a matplotlib Figure, and a NumPy object array (rows,
        columns) of axes.
    Raises:
        ImportError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: F401
    except ImportError:
        raise extra_missing("Pictures", "matplotlib", "notebooks") from None
    from keras_vanilla.plots.picture import Picture

    if title is not None:
        width = max(width, 1.2 * title_inches(title))  # the title's letters are larger
    figure = Picture(figsize=(width, height), dpi=100, layout="constrained")
    if title is not None:
        figure.suptitle(shown(title, longest=None))
    return figure, figure.subplots(rows, columns, squeeze=False)


def name_axes(axes: "Axes", *, title: str, x_axis: str, y_axis: str) -> None:
    """Writes a title and the names of the axes."""
    name_picture(axes, title)
    axes.set_xlabel(shown(x_axis, longest=None))
    axes.set_ylabel(shown(y_axis, longest=None))


def name_picture(axes: "Axes", title: str) -> None:
    """Writes a title of one or more lines above a picture."""
    axes.set_title(shown_lines(title), fontsize="medium")


def title_inches(title: str) -> float:
    """Returns the width in inches that a figure needs for its title."""
    return 0.09 * max(map(len, title.split("\n"))) + 0.6


def name_ticks(axis: "Axis", names: Sequence[str], inches: float) -> None:
    """Writes names at the positions 0, 1, 2, ... of an axis.

    If there is no room for all, only every second, fifth, tenth, ... is written, with
    its number, and the axis mentions this. Long names below a short axis are rotated.

    Args:
        axis: `axes.xaxis` or `axes.yaxis`, which must already have its label.
        names: sequence of str.
        inches: float. Length of the axis.
    """
    room = max(1, int(inches / NAME_INCHES))
    steps = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = next(step for step in steps if math.ceil(len(names) / step) <= room)
    indices = range(0, len(names), step)
    written = [
        shown(names[i]) if _is_seen(names[i]) else _codes(names[i]) for i in indices
    ]
    if step > 1:
        written = [f"{i} {name}" for i, name in zip(indices, written, strict=True)]
        axis.set_label_text(f"{axis.get_label_text()} (one of {step} named)")
    narrow = 0.09 * max(map(len, written)) > inches / len(written)
    turn = 90 if axis.axis_name == "x" and narrow else 0
    axis.set_ticks(indices, written, rotation=turn, fontsize="small")


def name_inches(names: Sequence[str] | None) -> float:
    """Returns the additional inches that long names need beside an axis."""
    longest = max(map(len, () if names is None else names), default=0)
    return 0.085 * max(0, min(longest, LONGEST_NAME) - 6)


def shown(text: str, longest: int | None = LONGEST_NAME) -> str:
    """Makes a text drawable, on one line and without parts that look like formulas.

    Args:
        text: str.
        longest: int or None. Longer texts are cut and end in an ellipsis.
    Returns:
        Str. Control characters, and characters that no installed font has, are replaced
        by their code points: <1F>, <52A8>.
    Warns:
        UserWarning: if no installed font has a character.
    """
    text = text if longest is None else cut(text, longest)
    if missing := sorted(c for c in set(text) if font_of(c) is None):
        warnings.warn(
            f"No font on this machine can show {''.join(missing)!r}; the picture has "
            "their code points. A Noto Sans font of their script would show them.",
            stacklevel=2,
        )
    unseen = [c for c in text if unicodedata.category(c) == "Cc"]
    codes = {c: _codes(c) for c in (*missing, *unseen)}
    return text.translate(str.maketrans(codes | {"\n": "⏎", "$": r"\$"}))


def shown_lines(text: str) -> str:
    """Makes each line of a text drawable, see `shown`, at any length."""
    return "\n".join(shown(line, longest=None) for line in text.split("\n"))


def cut(text: str, longest: int) -> str:
    """Cuts a text to its first characters and "…" if it is too long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def fonts_for(text: str) -> list[str]:
    """Returns families of installed fonts that together can show a text."""
    return [FIRST_FONT, *sorted({*map(font_of, text)} - {FIRST_FONT, None})]


@functools.cache
def font_of(character: str) -> str | None:
    """Returns the first installed font family that has a character, or None."""
    if unicodedata.category(character) in ("Cc", "Cf"):
        return FIRST_FONT  # no mark on paper, such as line ends and direction marks
    families = (name for name, path in _fonts() if ord(character) in _characters(path))
    return next(families, None)


def _is_seen(text):
    """Returns True if any character is visible."""
    return any(unicodedata.category(c) not in ("Cf", "Zs") for c in text)


def _codes(text):
    return "".join(f"<{ord(character):02X}>" for character in text) or "<>"


@functools.cache
def _fonts():
    """Returns (family, path) of the installed fonts, the preferred one first."""
    from matplotlib.font_manager import findfont, fontManager

    paths = {font.name: font.fname for font in fontManager.ttflist}
    paths.pop(LAST_FONT, None)
    return [(FIRST_FONT, findfont(FIRST_FONT)), *sorted(paths.items())]


@functools.cache
def _characters(path):
    """Returns the code points that a font supports."""
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(path).get_charmap())
