"""Drawings of a Transformer, from a black box to all of its layers."""

from typing import TYPE_CHECKING

from keras_vanilla.plots.drawing import Drawing
from keras_vanilla.plots.layer_drawing import APART, draw_column, draw_layer
from keras_vanilla.plots.palette import PARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.models.transformer import Transformer

ENCODER, DECODER, MEMORY = (PARTS[part] for part in ("encoder", "decoder", "memory"))
LEVELS = {
    "box": "The Transformer, a black box",
    "stacks": "The Transformer: encoder and decoder",
    "layers": "The Transformer's layers",
    "parts": "One layer of each stack",
    "whole": "The whole Transformer",
}


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
    if level not in LEVELS:
        raise ValueError(f"`level` must be one of {tuple(LEVELS)}. Received: {level!r}")
    drawing = Drawing(LEVELS[level] if title is None else title)
    if level == "box":
        _draw_black_box(drawing, model, source, target)
    elif level == "stacks":
        _draw_stacks(drawing, model, source, target)
    elif level == "layers":
        _draw_layers(drawing, model, source, target)
    else:
        _draw_parts(drawing, model, source, target, all_of_it=level == "whole")
    return drawing.finish()


def _draw_black_box(drawing, model, source, target):
    box = drawing.box(0, 0, f"Transformer\n{model.count_params():,} parameters", 2.4)
    _side_text(drawing, box, source, -1)
    _side_text(drawing, box, target, 1)


def _side_text(drawing, box, text, side):
    near, far = (box.left, -0.5) if side < 0 else (box.right, 0.5)
    there = (near[0] + far, near[1])
    drawing.arrow(*((there, near) if side < 0 else (near, there)))
    ends = "right" if side < 0 else "left"
    drawing.text(there[0] + side * 0.08, there[1], text, side=ends)


def _draw_stacks(drawing, model, source, target):
    layers = model.num_encoder_layers, model.num_decoder_layers
    encoder = drawing.box(0, 0, f"encoder\n{layers[0]} layers", fill=ENCODER.light)
    text = f"decoder\n{layers[1]} layers"
    decoder = drawing.box(APART, 0, text, fill=DECODER.light)
    drawing.frame([encoder, decoder], "Transformer", around=0.35)
    drawing.arrow(encoder.right, decoder.left, color=MEMORY.dark, width=1.8)
    size = f"memory (S, {model.d_model})"
    drawing.text(APART / 2, 0.2, size, color=MEMORY.dark)
    _ends(drawing, encoder, decoder, source, target)


def _draw_layers(drawing, model, source, target):
    names = [layer.name for layer in model.encoder_layers]
    encoder = draw_column(drawing, 0, 0, names, ENCODER.light)
    names = [layer.name for layer in model.decoder_layers]
    decoder = draw_column(drawing, APART, 0, names, DECODER.light)
    drawing.frame(encoder, "encoder")
    drawing.frame(decoder, "decoder")
    _share_memory(drawing, encoder[-1], decoder)
    _ends(drawing, encoder[0], decoder[0], source, target, top=decoder[-1])


def _draw_parts(drawing, model, source, target, all_of_it):
    draw = _draw_stack if all_of_it else _draw_one_of
    encoder = draw(drawing, 0, model.encoder_layers, "encoder")
    decoder = draw(drawing, APART, model.decoder_layers, "decoder")
    crossings = [
        parts[model.normalize_first]
        for name, parts in decoder
        if name == "cross_attention"
    ]
    first, second = encoder[0][1][0], decoder[0][1][0]
    memory, top = encoder[-1][1][-1], decoder[-1][1][-1]
    if model.encoder_norm is not None:
        memory, top = (_above(drawing, box, ["LayerNorm"]) for box in (memory, top))
    _share_memory(drawing, memory, crossings)
    if all_of_it:
        first, second = (_draw_inputs(drawing, model, box) for box in (first, second))
        bias = " + b" if model.output_bias else ""
        table = "E" if model.tie_output else "W"
        logits = f"logits: x {table}ᵀ{bias}\n({model.target_vocabulary_size:,})"
        top = _above(drawing, top, [logits, "softmax"])
    _ends(drawing, first, second, source, target, top)


def _draw_one_of(drawing, x, layers, kind):
    return draw_layer(drawing, x, 0, layers[0], f"{len(layers)} × {kind} layer")


def _draw_stack(drawing, x, layers, kind):
    """Draws layers from bottom to top; returns name and boxes of each sub-layer."""
    drawn = []
    for layer in layers:
        y = drawn[-1][1][-1].top[1] + 1.0 if drawn else 0
        parts = draw_layer(drawing, x, y, layer, layer.name)
        if drawn:
            drawing.arrow(drawn[-1][1][-1].top, parts[0][1][0].bottom)
        drawn += parts
    return drawn


def _share_memory(drawing, top, readers):
    """Draws arrows from the top encoder layer to each box that reads the memory."""
    x, y = top.top[0], top.top[1] + 0.7
    bus = x + APART / 2
    path = [top.top, (x, y), (bus, y)]
    for reader in readers:
        way = (*path, (bus, reader.y), reader.left)
        drawing.arrow(*way, color=MEMORY.dark, width=1.8)
        path = [(bus, min(y, reader.y))]  # the other arrows branch off
    drawing.text(bus - 0.1, y + 0.13, "memory", side="right", color=MEMORY.dark)


def _draw_inputs(drawing, model, box):
    """Draws embedding and positions below the first box of a stack."""
    scale = f" × √{model.d_model}" if model.scale_embeddings else ""
    names = [f"TokenEmbedding{scale}", "add PositionalEncoding"]
    table, positions = draw_column(drawing, box.x, box.y - 1.9, names)
    drawing.arrow(positions.top, box.bottom)
    return table


def _above(drawing, box, texts):
    """Draws boxes above the last one of a stack; returns the last of them."""
    boxes = draw_column(drawing, box.x, box.top[1] + 0.75, texts)
    drawing.arrow(box.top, boxes[0].bottom)
    return boxes[-1]


def _ends(drawing, encoder, decoder, source, target, top=None):
    """Draws the texts that enter both stacks from below, and the output text."""
    top = decoder if top is None else top
    for box, text in ((encoder, source), (decoder, f"<s> {target}")):
        x, y = box.bottom
        drawing.arrow((x, y - 0.6), box.bottom)
        drawing.text(x, y - 0.72, text)
    x, y = top.top
    drawing.arrow(top.top, (x, y + 0.6))
    drawing.text(x, y + 0.72, f"{target} </s>")
