"""Pictures of one text in a translator: its attention and its positions."""

from typing import TYPE_CHECKING

import numpy as np
from keras import ops

from keras_vanilla.plots.attention import attention_map
from keras_vanilla.plots.pieces import START, source_names, source_of, target_names
from keras_vanilla.plots.positions import position_map

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
    """Draws the attention weights while a text is translated by greedy search.

    The rows of the decoder's attention have the names of the pieces that are predicted
    there, the columns of its self-attention those of the pieces that it reads.

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
        ValueError: if the text has no piece or more pieces than the model takes, or
            there is no such kind, layer or head.
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {tuple(KINDS)}. Received: {kind!r}")
    model = translator.model
    source = source_of(translator, text)
    target = next(translator.stream([text]))[0].ids
    shifted = [model.start_id, *target[:-1]]
    inputs = {"source_ids": np.array([source]), "target_ids": np.array([shifted])}
    weights = model.attention_weights(inputs)
    depth = model.num_encoder_layers if kind == "encoder" else model.num_decoder_layers
    layer = _chosen(layer, depth, "layer") or depth
    weights = weights[_name(kind, layer)][0]  # (N, T, S)
    head = _chosen(head, len(weights), "head")
    of_heads = f"head {head}" if head else "mean of the heads"
    return attention_map(
        weights[head - 1] if head else weights.mean(axis=0),
        *_rows_and_columns(kind, translator.tokenizer, source, target),
        title=f"{KINDS[kind]}, layer {layer} of {depth}, {of_heads}",
        x_axis="piece read" if kind == "decoder" else "source piece",
        y_axis="source piece" if kind == "encoder" else "piece predicted",
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


def _chosen(number, count, what):
    if number is not None and not 1 <= number <= count:
        raise ValueError(
            f"`{what}` must be from 1, the first, to {count}. Received: {number}"
        )
    return number


def _name(kind, layer):
    """The key of `Transformer.attention_weights`."""
    if kind == "encoder":
        return f"encoder/{layer - 1}"
    return f"decoder/{layer - 1}/{'cross' if kind == 'cross' else 'self'}"


def _rows_and_columns(kind, tokenizer, source, target):
    source = list(map(source_names(tokenizer), source))
    target = list(map(target_names(tokenizer), target))
    return {
        "cross": (target, source),
        "encoder": (source, source),
        "decoder": (target, [START, *target[:-1]]),
    }[kind]
