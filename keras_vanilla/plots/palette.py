"""The colours of the pictures: each part of the model has its own, in every picture.

No picture needs them to be understood: parts have their names beside them, larger
numbers are darker, and lines differ by dashes and markers.
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
PLAIN = "Blues"  # the map of what is no part of the model
SIGNED = "RdBu_r"  # red above 0, blue below, white at 0


def color_map(part: str | None, signed: bool = False) -> "Colormap":
    """The colours of a table of numbers, from white to the darkest.

    Args:
        part: a name of `PARTS`, or None.
        signed: bool. Whether there are numbers on both sides of 0, which then is white.
    Raises:
        ValueError: if there is no such part.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    if part is not None:
        check_choice("part", part, tuple(PARTS))
    if signed:
        return colormaps[SIGNED]
    if part is None:
        return colormaps[PLAIN]
    shades = PARTS[part]
    return LinearSegmentedColormap.from_list(part, ["white", shades.light, shades.dark])


def ink_on(color: tuple[float, ...]) -> str:
    """Black or white, whichever can be read on a colour (red, green, blue, ...)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.18 else "black"  # where both contrasts are equal
