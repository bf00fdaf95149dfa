"""Drawings of a Transformer, from a black box to its layers' parts with their sizes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from drawings.drawing import PLAIN, Drawing, height_of
from keras_vanilla._checks import check_choice
from keras_vanilla.layers import DecoderLayer
from keras_vanilla.plots.style import PARTS, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.layers import EncoderLayer
    from keras_vanilla.models.transformer import Transformer

ENCODER, DECODER, MEMORY = (PARTS[part] for part in ("encoder", "decoder", "memory"))
LEVELS = {
    "box": "The Transformer, a black box",
    "stacks": "The Transformer: encoder and decoder",
    "layers": "The Transformer's layers",
    "parts": "One layer of each stack",
    "whole": "The whole Transformer",
}
GAP = 0.2  # inches between a box and the next one above it
BETWEEN = 0.45  # the same between sub-layers, where residual connections start
ASIDE = 1.2  # inches from a column's middle to its residual connections
APART = 3.6  # inches between two columns' middles


@style()
def architecture(
    model: "Transformer",
    level: str = "layers",
    source: str = "je suis étudiant",
    target: str = "i am a student",
    *,
    title: str | None = None,
) -> "Figure":
    """Draws a Transformer with the names and sizes of its layers.

    Each level shows more details than the previous one:

        box      text in, text out
        stacks   encoder and decoder
        layers   each stack's layers
        parts    one layer of each stack: sub-layers, residuals and normalisations
        whole    all layers with all their parts, embeddings and output

    Args:
        model: Transformer.
        level: one of the names above.
        source: str. The input text.
        target: str. The output text.
        title: str or None. None means a default title for the level.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the level is unknown.
    """
    check_choice("level", level, tuple(LEVELS))
    drawing = Drawing(LEVELS[level] if title is None else title)
    if level == "box":
        box = drawing.box(
            0, 0, f"Transformer\n{model.count_params():,} parameters", 2.4
        )
        (left, y), (right, _) = box.left, box.right
        drawing.arrow((left - 0.5, y), box.left)
        drawing.text(left - 0.58, y, source, side="right")
        drawing.arrow(box.right, (right + 0.5, y))
        drawing.text(right + 0.58, y, target, side="left")
        return drawing.finish()
    if level == "stacks":
        columns = _draw_stacks(drawing, model)
    elif level == "layers":
        columns = _draw_layers(drawing, model)
    else:
        columns = _draw_parts(drawing, model, all_of_it=level == "whole")
    _draw_texts(drawing, *columns, source, target)
    return drawing.finish()


@style()
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
    simple = _draw_column(drawing, 0, 0, _sublayers(layer))
    complete, _ = _draw_layer(drawing, APART, 0, layer, layer.name)
    for boxes, name in ((simple, "simplified"), (complete, "with residuals and norms")):
        (x, low), (_, high) = boxes[0].bottom, boxes[-1].top
        drawing.arrow((x, low - 0.6), (x, low))
        drawing.arrow((x, high), (x, high + 0.65))
        drawing.text(x, low - 0.72, name)
    return drawing.finish()


@style()
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
    (attention, fill), (network, _) = _sublayers(layer)
    across = [2.2 * i for i in range(len(words))]
    middle, wide = sum(across) / len(across), across[-1] + 1.9
    attend = drawing.box(middle, 1.3, attention, wide, fill)
    for x, word, low in zip(across, words, "₁₂₃₄₅₆₇₈", strict=False):
        below = drawing.box(x, 0.5, f"x{low} ({width},)", 1.1, PARTS["X"].light)
        z = drawing.box(x, 2.1, f"z{low} ({width},)", 1.1, PARTS["Z"].light)
        network_box = drawing.box(x, 2.9, network, fill=fill)
        r = drawing.box(x, 3.7, f"r{low} ({width},)", 1.1)
        drawing.text(x, -0.1, word)
        drawing.arrow((x, 0.02), below.bottom)
        drawing.arrow(below.top, (x, attend.bottom[1]))
        drawing.arrow((x, attend.top[1]), z.bottom)
        drawing.arrow(z.top, network_box.bottom)
        drawing.arrow(network_box.top, r.bottom)
    return drawing.finish()


# Both columns of a level. The functions return the boxes that the source and the target
# enter, and the box that the output leaves.


def _draw_stacks(drawing, model):
    counts = model.num_encoder_layers, model.num_decoder_layers
    encoder = drawing.box(0, 0, f"encoder\n{counts[0]} layers", fill=ENCODER.light)
    decoder = drawing.box(APART, 0, f"decoder\n{counts[1]} layers", fill=DECODER.light)
    drawing.frame([encoder, decoder], "Transformer", around=0.35)
    drawing.arrow(encoder.right, decoder.left, color=MEMORY.dark, linewidth=1.8)
    drawing.text(APART / 2, 0.2, f"memory (S, {model.d_model})", color=MEMORY.dark)
    return encoder, decoder, decoder


def _draw_layers(drawing, model):
    encoder, decoder = (
        _draw_column(drawing, x, 0, [(layer.name, shades.light) for layer in layers])
        for x, layers, shades in (
            (0, model.encoder_layers, ENCODER),
            (APART, model.decoder_layers, DECODER),
        )
    )
    drawing.frame(encoder, "encoder")
    drawing.frame(decoder, "decoder")
    _share_memory(drawing, encoder[-1], decoder)
    return encoder[0], decoder[0], decoder[-1]


def _draw_parts(drawing, model, all_of_it):
    layers = model.encoder_layers, model.decoder_layers
    encoder, _ = _draw_stack(drawing, 0, layers[0], "encoder", all_of_it)
    decoder, readers = _draw_stack(drawing, APART, layers[1], "decoder", all_of_it)
    first, second, memory, top = encoder[0], decoder[0], encoder[-1], decoder[-1]
    if model.encoder_norm is not None:
        memory, top = (_draw_above(drawing, box, "LayerNorm") for box in (memory, top))
    _share_memory(drawing, memory, readers)
    if all_of_it:
        first, second = (_draw_inputs(drawing, model, box) for box in (first, second))
        bias = " + b" if model.output_bias else ""
        table = "E" if model.tie_output else "W"
        logits = f"logits: x {table}ᵀ{bias}\n({model.target_vocabulary_size:,})"
        top = _draw_above(drawing, top, logits, "softmax")
    return first, second, top


def _draw_texts(drawing, encoder, decoder, top, source, target):
    """Draws the texts that enter both stacks from below, and the output text."""
    for box, text in ((encoder, source), (decoder, f"<s> {target}")):
        x, y = box.bottom
        drawing.arrow((x, y - 0.6), box.bottom)
        drawing.text(x, y - 0.72, text)
    x, y = top.top
    drawing.arrow(top.top, (x, y + 0.6))
    drawing.text(x, y + 0.72, f"{target} </s>")


# One column. Those of layers also return the boxes that read the memory.


def _draw_column(drawing, x, y, named):
    """Draws a column of boxes from y upwards, joined by arrows.

    `named` has the text and the colour of each.
    """
    boxes = []
    for text, fill in named:
        box = drawing.box(x, y + height_of(text) / 2, text, fill=fill)
        if boxes:
            drawing.arrow(boxes[-1].top, box.bottom)
        boxes.append(box)
        y = box.top[1] + GAP
    return boxes


def _draw_layer(drawing, x, y, layer, name):
    """Draws a layer in a named frame."""
    side = 1 if isinstance(layer, DecoderLayer) else -1  # away from the memory
    boxes, readers = [], []
    for text, fill in _sublayers(layer):
        order = [(text, fill), ("add, LayerNorm", PLAIN)]
        if layer.normalize_first:
            order = [("LayerNorm", PLAIN), (text, fill), ("add", PLAIN)]
        parts = _draw_column(drawing, x, y, order)
        if boxes:
            drawing.arrow(boxes[-1].top, parts[0].bottom)
        _draw_residual(drawing, parts[0], parts[-1], side)
        boxes += parts
        y = boxes[-1].top[1] + BETWEEN
        if fill == MEMORY.light:
            readers.append(parts[layer.normalize_first])
    drawing.frame(boxes, name, around=0.32)
    return boxes, readers


def _draw_stack(drawing, x, layers, kind, all_of_it):
    """Draws layers from bottom to top, or the first one in place of all."""
    drawn, readers = [], []
    for layer in layers if all_of_it else layers[:1]:
        name = layer.name if all_of_it else f"{len(layers)} × {kind} layer"
        y = drawn[-1].top[1] + 1.0 if drawn else 0
        boxes, more = _draw_layer(drawing, x, y, layer, name)
        if drawn:
            drawing.arrow(drawn[-1].top, boxes[0].bottom)
        drawn += boxes
        readers += more
    return drawn, readers


def _draw_inputs(drawing, model, box):
    """Draws embedding and positions below the first box of a stack."""
    scale = f" × √{model.d_model}" if model.scale_embeddings else ""
    names = f"TokenEmbedding{scale}", "add PositionalEncoding"
    named = [(name, PLAIN) for name in names]
    table, positions = _draw_column(drawing, box.x, box.y - 1.9, named)
    drawing.arrow(positions.top, box.bottom)
    return table


def _draw_above(drawing, box, *texts):
    """Draws boxes above the last one of a stack; returns the last of them."""
    named = [(text, PLAIN) for text in texts]
    boxes = _draw_column(drawing, box.x, box.top[1] + 0.75, named)
    drawing.arrow(box.top, boxes[0].bottom)
    return boxes[-1]


def _draw_residual(drawing, first, last, side):
    """Draws a residual connection from below the first box to the side of the last."""
    x, y = first.bottom[0], first.bottom[1] - 0.15
    enters = last.left if side < 0 else last.right
    aside = x + side * ASIDE
    drawing.arrow((x, y), (aside, y), (aside, enters[1]), enters)


def _share_memory(drawing, top, readers):
    """Draws arrows from the top encoder layer to each box that reads the memory."""
    x, y = top.top[0], top.top[1] + 0.7
    bus = x + APART / 2
    path = [top.top, (x, y), (bus, y)]
    for reader in readers:
        way = (*path, (bus, reader.y), reader.left)
        drawing.arrow(*way, color=MEMORY.dark, linewidth=1.8)
        path = [(bus, min(y, reader.y))]  # the other arrows branch off
    drawing.text(bus - 0.1, y + 0.13, "memory", side="right", color=MEMORY.dark)


def _sublayers(layer):
    """Returns the text with its sizes and the colour of each sub-layer's box."""
    attention, network = layer.self_attention, layer.feed_forward
    heads = f"{attention.num_heads} heads of {attention.key_dim}"
    width = network.outer.units
    last = f"feed-forward\n{width} → {network.d_ff} → {width}"
    if not isinstance(layer, DecoderLayer):
        color = ENCODER.light
        return [(f"self-attention\n{heads}", color), (last, color)]
    color = DECODER.light
    return [
        (f"masked self-attention\n{heads}", color),
        (f"cross-attention\n{heads}", MEMORY.light),
        (last, color),
    ]
