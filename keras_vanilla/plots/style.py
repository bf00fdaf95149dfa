"""The look of all figures: matplotlib's settings, colours, and names along axes."""

import contextlib
import math
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from keras_vanilla._checks import check_choice, extra_missing

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap

LONGEST_NAME = 24  # characters
NAME_INCHES = 0.15  # along an axis, per name


class Shades(NamedTuple):
    """A dark shade for lines and large numbers, a light one for areas behind text."""

    dark: str
    light: str


# Each part of the model has its own colours. Plain numbers are magenta above 0 and lime
# below. Figures are readable without colours: larger numbers are darker, lines differ
# by dashes.
PARTS = {
    "X": Shades("#404040", "#d9d9d9"),
    "Q": Shades("#c05500", "#fdd5b0"),
    "K": Shades("#1a5a99", "#c4dcf0"),
    "V": Shades("#1b6e30", "#c8e6c3"),
    "Z": Shades("#5e3c99", "#d9d0ec"),
    "encoder": Shades("#01665e", "#bfe3df"),
    "decoder": Shades("#a01550", "#f4c4d4"),
    "memory": Shades("#5c4400", "#f0dc9c"),
}
BLACK, MAGENTA, LIME, GREY = "#000000", "#b000b0", "#7a8a00", "#8a8a8a"
CHARTS = BLACK, MAGENTA, LIME, GREY
ABOVE = "white", "#e7a6e7", "#7a007a"
BELOW = "#5c6600", "#d3db6a"

# Fonts of scripts that DejaVu Sans lacks, if they are installed.
FONTS = (
    "Noto Sans CJK JP,Noto Sans CJK SC,Noto Sans SC,Noto Sans JP,Noto Sans KR,"
    "Noto Sans Devanagari,Noto Sans Thai,PingFang SC,Hiragino Sans,Microsoft YaHei,"
    "Apple SD Gothic Neo,Malgun Gothic,Nirmala UI,Arial Unicode MS"
).split(",")
STYLE = {
    "axes.prop_cycle": (
        f"cycler('color', {list(CHARTS)}) + cycler('linestyle', ['-', '--', ':', '-.'])"
    ),
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "grid.alpha": 0.3,
    "image.interpolation": "nearest",
    "legend.fontsize": "small",
    "legend.title_fontsize": "small",
    "lines.markersize": 4,
    "text.parse_math": False,  # "$" in a token is no formula
    "xtick.labelsize": "small",
    "ytick.labelsize": "small",
}
_ONE_AT_A_TIME = threading.RLock()  # matplotlib's settings are global


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Applies `STYLE` in a block, or in the function that it decorates.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context, rcParams
        from matplotlib.font_manager import fontManager
    except ImportError:
        raise extra_missing("Pictures", "matplotlib", "notebooks") from None
    installed = set(fontManager.get_font_names())
    chosen = [font for font in rcParams["font.family"] if font != "sans-serif"]
    fonts = chosen or ["DejaVu Sans", *(font for font in FONTS if font in installed)]
    with _ONE_AT_A_TIME, rc_context(STYLE | {"font.family": fonts}):
        yield


def color_map(part: str | None, signed: bool = False) -> "Colormap":
    """Returns the colour map for a table of numbers, from white to the darkest.

    Args:
        part: a name of `PARTS`, or None.
        signed: bool. Whether there are numbers on both sides of 0. If so, 0 is white,
            numbers above it are magenta and numbers below it lime, for all parts.
    Raises:
        ValueError: if the part is unknown.
    """
    from matplotlib.colors import LinearSegmentedColormap

    if part is not None:
        check_choice("part", part, tuple(PARTS))
    colors = ABOVE if part is None else ("white", PARTS[part].light, PARTS[part].dark)
    colors = (*BELOW, *ABOVE) if signed else colors
    return LinearSegmentedColormap.from_list("numbers", colors)


def ink_on(color: tuple[float, ...]) -> str:
    """Returns black or white, whichever is readable on a colour (red, green, ...)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.18 else "black"  # both contrasts are equal there


def name_ticks(axis: "Axis", names: Sequence[str], inches: float) -> None:
    """Writes names at the positions 0, 1, 2, ... of an axis.

    If there is no room for all, only every n-th is written, with its number, and the
    axis says so. Long names below a short axis are rotated.

    Args:
        axis: `axes.xaxis` or `axes.yaxis`, which must already have its label.
        names: sequence of str.
        inches: float. Length of the axis.
    """
    step = math.ceil(len(names) * NAME_INCHES / max(inches, NAME_INCHES))
    written = {i: shown(names[i]) for i in range(0, len(names), step)}
    if step > 1:
        written = {i: f"{i} {name}" for i, name in written.items()}
        axis.set_label_text(f"{axis.get_label_text()} (one of {step} named)")
    narrow = 0.09 * max(map(len, written.values())) > inches / len(written)
    turn = 90 if axis.axis_name == "x" and narrow else 0
    axis.set_ticks(list(written), list(written.values()), rotation=turn)


def name_inches(names: Sequence[str] | None) -> float:
    """Returns the additional inches that long names need beside an axis."""
    longest = max(map(len, () if names is None else names), default=0)
    return 0.085 * max(0, min(longest, LONGEST_NAME) - 6)


def shown(text: str, longest: int = LONGEST_NAME) -> str:
    """Returns a short text of one line, with codes for what leaves no mark: <1F>."""
    categories = {character: unicodedata.category(character) for character in text}
    hidden = {c for c, category in categories.items() if category == "Cc"}
    if not set(categories.values()) - {"Cc", "Cf", "Zs"}:
        hidden = set(text)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(f"<{ord(c):02X}>" if c in hidden else c for c in text) or "<>"
