"""Drawings of an encoder or decoder layer with its sizes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_vanilla.plots.drawing import PLAIN, Box, Drawing, height_of
from keras_vanilla.plots.palette import PARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.layers import DecoderLayer, EncoderLayer

GAP = 0.2  # inches between a box and the next one above it
BETWEEN = 0.45  # the same between sub-layers, where residual connections start
ASIDE = 1.2  # inches from a column's middle to its residual connections
APART = 3.6  # inches between two columns' middles


def layer_with_frame(
    layer: "EncoderLayer | DecoderLayer",
    *,
    title: str = "One layer, without and with its frame",
) -> "Figure":
    """Draws a layer's sub-layers alone, and next to them the complete layer.

    Args:
        layer: EncoderLayer or DecoderLayer that is built.
        title: str.
    Returns:
        A matplotlib Figure.
    """
    drawing = Drawing(title)
    simple = draw_column(drawing, 0, 0, _sublayer_names(layer), _fills(layer))
    drawn = draw_layer(drawing, APART, 0, layer, layer.name)
    whole = [box for _, boxes in drawn for box in boxes]
    for boxes, name in ((simple, "simplified"), (whole, "with residuals and norms")):
        (x, low), (_, high) = boxes[0].bottom, boxes[-1].top
        drawing.arrow((x, low - 0.6), (x, low))
        drawing.arrow((x, high), (x, high + 0.65))
        drawing.text(x, low - 0.72, name)
    return drawing.finish()


def token_flow(
    layer: "EncoderLayer",
    words: Sequence[str],
    *,
    title: str = "The path of each word through one encoder layer",
) -> "Figure":
    """Draws the path of each word's vector through an encoder layer: x to z to r.

    Only self-attention combines the words; the feed-forward network processes each one
    separately. Residual connections and normalisations are omitted.

    Args:
        layer: EncoderLayer that is built.
        words: sequence of str.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are no words, or more than eight.
    """
    if not 1 <= len(words) <= 8:
        raise ValueError(
            f"A flow is drawn for 1 to 8 words. Received: {len(words)} words"
        )
    drawing = Drawing(title)
    width = layer.feed_forward.outer.units
    attention, network = _sublayer_names(layer)
    across = [2.2 * i for i in range(len(words))]
    middle, wide = sum(across) / len(across), across[-1] + 1.9
    fill = PARTS["encoder"].light
    attend = drawing.box(middle, 1.3, attention, width=wide, fill=fill)
    for i, (x, word) in enumerate(zip(across, words, strict=True), start=1):
        below = drawing.box(x, 0.5, f"x{_low(i)} ({width},)", 1.1, PARTS["X"].light)
        z = drawing.box(x, 2.1, f"z{_low(i)} ({width},)", 1.1, PARTS["Z"].light)
        network_box = drawing.box(x, 2.9, network, fill=fill)
        r = drawing.box(x, 3.7, f"r{_low(i)} ({width},)", width=1.1)
        drawing.text(x, -0.1, word)
        drawing.arrow((x, 0.02), below.bottom)
        drawing.arrow(below.top, (x, attend.bottom[1]))
        drawing.arrow((x, attend.top[1]), z.bottom)
        drawing.arrow(z.top, network_box.bottom)
        drawing.arrow(network_box.top, r.bottom)
    return drawing.finish()


def draw_layer(
    drawing: Drawing,
    x: float,
    y: float,
    layer: "EncoderLayer | DecoderLayer",
    name: str,
) -> list[tuple[str, list[Box]]]:
    """Draws a layer in a named frame; returns the name and boxes of each sub-layer."""
    is_decoder = hasattr(layer, "cross_attention")
    side = 1 if is_decoder else -1  # the memory comes from the other side
    drawn, boxes = [], []
    for sublayer, text in zip(_sublayers(layer), _sublayer_names(layer), strict=True):
        order = [text, "add, LayerNorm"]
        if layer.normalize_first:
            order = ["LayerNorm", text, "add"]
        below = boxes[-1] if boxes else None
        start = y if below is None else below.top[1] + BETWEEN
        parts = draw_column(drawing, x, start, order, _fills(layer))
        if below:
            drawing.arrow(below.top, parts[0].bottom)
        _bypass(drawing, parts[0], parts[-1], side)
        drawn.append((sublayer, parts))
        boxes += parts
    drawing.frame(boxes, name, around=0.32)
    return drawn


def draw_column(
    drawing: Drawing,
    x: float,
    y: float,
    texts: Sequence[str],
    fills: dict[str, str] | str = PLAIN,
) -> list[Box]:
    """Draws a column of boxes from y upwards, joined by arrows.

    `fills` is the colour of all boxes, or a dict of text -> colour.
    """
    boxes = []
    for text in texts:
        fill = fills if isinstance(fills, str) else fills.get(text, PLAIN)
        box = drawing.box(x, y + height_of(text) / 2, text, fill=fill)
        if boxes:
            drawing.arrow(boxes[-1].top, box.bottom)
        boxes.append(box)
        y = box.top[1] + GAP
    return boxes


def _bypass(drawing, first, last, side):
    """Draws a residual connection from below the first box to the side of the last."""
    x, y = first.bottom[0], first.bottom[1] - 0.15
    enters = last.left if side < 0 else last.right
    aside = x + side * ASIDE
    drawing.arrow((x, y), (aside, y), (aside, enters[1]), enters)


def _sublayers(layer):
    names = ("self_attention", "cross_attention", "feed_forward")
    return [name for name in names if hasattr(layer, name)]


def _sublayer_names(layer):
    """Returns the texts of the boxes, with the layer's sizes."""
    attention, network = layer.self_attention, layer.feed_forward
    heads = f"{attention.num_heads} heads of {attention.key_dim}"
    width = network.outer.units
    masked = "masked " if hasattr(layer, "cross_attention") else ""
    texts = {
        "self_attention": f"{masked}self-attention\n{heads}",
        "cross_attention": f"cross-attention\n{heads}",
        "feed_forward": f"feed-forward\n{width} → {network.d_ff} → {width}",
    }
    return [texts[name] for name in _sublayers(layer)]


def _fills(layer):
    """Returns the colours of the boxes of sub-layers, by text."""
    own = "decoder" if hasattr(layer, "cross_attention") else "encoder"
    pairs = zip(_sublayers(layer), _sublayer_names(layer), strict=True)
    parts = {text: "memory" if "cross" in name else own for name, text in pairs}
    return {text: PARTS[part].light for text, part in parts.items()}


def _low(number):
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
