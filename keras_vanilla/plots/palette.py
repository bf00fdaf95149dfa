"""Colours, which are the same for each part of the model in all pictures.

Other elements use different colours: numbers above 0 are magenta, numbers below 0 are
lime, and lines and bars are black, magenta, lime or grey. Pictures can be understood
without colours: parts are labelled, larger numbers are darker, and lines differ by
dashes and markers.
"""

from typing import TYPE_CHECKING, NamedTuple

from keras_vanilla._checks import check_choice

if TYPE_CHECKING:
    from matplotlib.colors import Colormap


class Shades(NamedTuple):
    """A dark shade for lines and large numbers, a light one for areas behind text."""

    dark: str
    light: str


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
CHARTS = BLACK, MAGENTA, LIME, GREY  # lines and bars; no part has these colours
ABOVE = "white", "#e7a6e7", "#7a007a"  # numbers from 0 up, without a part
BELOW = "#5c6600", "#d3db6a"  # from the lowest number to 0


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
    if signed:
        return LinearSegmentedColormap.from_list("signed", [*BELOW, *ABOVE])
    if part is None:
        return LinearSegmentedColormap.from_list("plain", ABOVE)
    shades = PARTS[part]
    return LinearSegmentedColormap.from_list(part, ["white", shades.light, shades.dark])


def ink_on(color: tuple[float, ...]) -> str:
    """Returns black or white, whichever is readable on a colour (red, green, ...)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.18 else "black"  # both contrasts are equal there
