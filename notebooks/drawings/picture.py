"""Figures as SVG and PNG, with alternative texts for screen readers."""

import io
import re
from html import escape

from matplotlib import rc_context
from matplotlib.figure import Figure

from keras_vanilla.plots.style import style

WIDEST = 900  # pixels; wider pictures are scaled down, including their letters
COLOURS = 64  # of a PNG, which is smaller with few
LONGEST = 600  # characters of an alternative text
PIXELS = 96 / 72  # per point
SETTINGS = {
    "svg.fonttype": "none",  # text remains text, for small files that programs can read
    "svg.hashsalt": "keras_vanilla",  # the same figure gives the same file
}
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # of equal width, so that all names fit


def show_in_notebooks() -> None:
    """Lets IPython show each figure as SVG of at most 900 pixels.

    The same as PNG is beside it, for viewers that drop SVG. Both have a white ground,
    also where a page is dark.
    """
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        formatters = shell.display_formatter.formatters
        formatters["image/svg+xml"].for_type(Figure, _with_text(svg))
        formatters["image/png"].for_type(Figure, _with_text(png))
        formatters["text/plain"].for_type(
            Figure, lambda figure, printer, _: printer.text(alternative_text(figure))
        )


def alternative_text(figure: Figure) -> str:
    """Returns the label of a figure, or else its titles, axes and numbers, as text."""
    text = figure.get_label() or describe(figure)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def svg(figure: Figure) -> str:
    """Returns a figure as an SVG document with its alternative text."""
    file = io.StringIO()
    with style(), rc_context(SETTINGS):
        figure.savefig(
            file,
            format="svg",
            bbox_inches="tight",
            pad_inches=0.1,
            metadata={"Date": None, "Creator": None},
        )
    drawn = file.getvalue().replace("'DejaVu Sans'", FONTS)
    drawn = drawn[drawn.index("<svg ") :]
    opening, rest = drawn.split(">", 1)
    width = float(re.search(r'width="([\d.]+)pt"', opening)[1]) * PIXELS
    size = f'width="{min(round(width), WIDEST)}" role="img" style="max-width: 100%"'
    opening = re.sub(r'(?:width|height)="[\d.]+pt" ?', "", opening)
    rest = re.sub(r"\s*<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    title = f"<title>{escape(alternative_text(figure), quote=False)}</title>"
    return f"{opening} {size}>\n {title}{rest}"


def png(figure: Figure) -> bytes:
    """Returns a figure as PNG of at most 900 pixels."""
    from PIL import Image  # comes with matplotlib

    file, small = io.BytesIO(), io.BytesIO()
    with style():
        settings = {"bbox_inches": "tight", "pad_inches": 0.1, "format": "png"}
        figure.savefig(file, dpi=72 * PIXELS, **settings)
    image = Image.open(file).convert("RGB")
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def _with_text(convert):
    """Returns a function of a figure's content and metadata, as IPython takes them."""

    def content_and_metadata(figure):
        metadata = {"alt": alternative_text(figure), "needs_background": "light"}
        return convert(figure), metadata

    return content_and_metadata


def describe(figure: Figure) -> str:
    """Returns the titles, axes and numbers of a figure as one text."""
    drawn = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    parts = [figure.get_suptitle(), *map(_describe_axes, drawn)]
    return " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts if part)


def _describe_axes(axes):
    if axes.images:
        shown = _table(axes)
    elif axes.containers:
        shown = _bars(axes)
    elif axes.lines and axes.axison:
        shown = _lines(axes)
    else:
        texts = [_one_line(text.get_text()) for text in axes.texts]
        shown = "; ".join(filter(None, texts))
    return ": ".join(part for part in (_one_line(axes.get_title()), shown) if part)


def _table(axes):
    values = axes.images[0].get_array()
    rows, columns = values.shape[:2]
    down, across = (
        f" ({_one_line(name)})" if name else ""
        for name in (axes.get_ylabel(), axes.get_xlabel())
    )
    table = f"table of {rows} rows{down} and {columns} columns{across}"
    if values.count() == 0:
        return table
    table += f", numbers from {values.min():.3g} to {values.max():.3g}"
    row, column = divmod(int(values.argmax()), columns)
    position = _tick(axes.yaxis, row, rows, "row")
    position += f", {_tick(axes.xaxis, column, columns, 'column')}"
    return f"{table}, the largest at {position}"


def _tick(axis, index, count, what):
    """Returns the name of a row or column, or its number."""
    names = [_one_line(label.get_text()) for label in axis.get_ticklabels()]
    return names[index] if len(names) == count and names[index] else f"{what} {index}"


def _bars(axes):
    groups = [_one_line(label.get_text()) for label in axes.get_xticklabels()]
    shown = []
    for bars in axes.containers:
        pairs = [
            f"{group} {bar.get_height():.3g}"
            for group, bar in zip(groups, bars, strict=False)
        ]
        name = bars.get_label().strip()
        name = "" if name.startswith("_container") else name
        shown.append(f"{name}: {', '.join(pairs)}" if name else ", ".join(pairs))
    return f"bars, {_one_line(axes.get_ylabel())}. {'; '.join(shown)}"


def _lines(axes):
    shown = []
    for line in axes.lines:
        points = line.get_xydata()
        points = points[~(points != points).any(axis=1)]  # without gaps
        if len(points):
            name = line.get_label().strip()
            name = "" if name.startswith("_") else f"{name} "
            shown.append(f"{name}from {points[0, 1]:.3g} to {points[-1, 1]:.3g}")
    x_values = [line.get_xdata() for line in axes.lines if len(line.get_xdata())]
    low, high = (f"{end:.4g}" for end in (x_values[0][0], x_values[0][-1]))
    y, x = _one_line(axes.get_ylabel()), _one_line(axes.get_xlabel())
    return f"{y} over {x} from {low} to {high}. {'; '.join(shown)}"


def _one_line(text):
    return " ".join(text.split())
