"""Figures of attention and positions for a text in a translator."""

from typing import TYPE_CHECKING

import numpy as np
from keras import ops

from keras_vanilla._checks import check_choice
from keras_vanilla.plots.attention import attention_map
from keras_vanilla.plots.positions import position_map
from keras_vanilla.tokenizer.piece_names import START, source_names, target_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.translation.translator import Translator

KINDS = {
    "cross": "Cross-attention",
    "encoder": "The encoder's self-attention",
    "decoder": "The decoder's self-attention",
}


def translation_attention(
    translator: "Translator",
    text: str,
    kind: str = "cross",
    layer: int | None = None,
    head: int | None = None,
) -> "Figure":
    """Draws the attention weights during the translation of a text by greedy search.

    The rows of the decoder's attention are labelled with the predicted pieces, and the
    columns of its self-attention with the pieces that it reads.

    Args:
        translator: Translator.
        text: str.
        kind: "cross" (translation to source), "encoder" (source to source) or "decoder"
            (translation to translation).
        layer: int or None. 1 is the first; None means the last.
        head: int or None. 1 is the first; None means the mean of all.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if the text has no piece or more pieces than the model takes, or the
            kind, layer or head does not exist.
    """
    check_choice("kind", kind, tuple(KINDS))
    model = translator.model
    source = source_of(translator, text)
    depth = model.num_encoder_layers if kind == "encoder" else model.num_decoder_layers
    layer = _chosen(layer, depth, "layer") or depth
    head = _chosen(head, model.num_heads, "head")
    target = next(translator.stream([text]))[0].ids
    shifted = [model.start_id, *target[:-1]]
    inputs = {"source_ids": np.array([source]), "target_ids": np.array([shifted])}
    pieces = list(map(source_names(translator.tokenizer), source))
    written = list(map(target_names(translator.tokenizer), target))
    rows, columns, key = {
        "cross": (written, pieces, "decoder/{}/cross"),
        "encoder": (pieces, pieces, "encoder/{}"),
        "decoder": (written, [START, *written[:-1]], "decoder/{}/self"),
    }[kind]
    weights = model.attention_weights(inputs)[key.format(layer - 1)][0]  # (N, T, S)
    of_heads = f"head {head}" if head else "mean of the heads"
    return attention_map(
        weights[head - 1] if head else weights.mean(axis=0),
        rows,
        columns,
        title=f"{KINDS[kind]}, layer {layer} of {depth}, {of_heads}",
        x_axis="piece read" if kind == "decoder" else "source piece",
        y_axis="source piece" if kind == "encoder" else "piece predicted",
        part="memory" if kind == "cross" else kind,
    )


def translation_positions(translator: "Translator", text: str) -> "Figure":
    """Draws the positional encoding that is added to the pieces of a text.

    Args:
        translator: Translator.
        text: str.
    Returns:
        A matplotlib Figure with one row per piece.
    Raises:
        ValueError: if the text has no piece or more pieces than the model takes.
    """
    source = source_of(translator, text)
    nothing = ops.zeros((1, len(source), translator.model.d_model))
    encoding = ops.convert_to_numpy(translator.model.positions(nothing))[0]
    pieces = list(map(source_names(translator.tokenizer), source))
    return position_map(encoding, pieces, title="Positional encoding of the pieces")


def source_of(translator: "Translator", text: str) -> list[int]:
    """Returns the source ids of a text, a list of int.

    Raises:
        ValueError: if it has no piece or more pieces than the model takes.
    """
    ids = translator.encode([text])[0]
    if len(ids) == 1:  # the end
        raise ValueError(f"The text must have at least one piece. Received: {text!r}")
    return ids


def _chosen(number, count, what):
    if number is not None and not 1 <= number <= count:
        raise ValueError(
            f"`{what}` must be from 1, the first, to {count}. Received: {number}"
        )
    return number
