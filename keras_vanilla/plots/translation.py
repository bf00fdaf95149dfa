"""Figures of attention and positions for a text in a translator."""

from typing import TYPE_CHECKING

import numpy as np
from keras import ops

from keras_vanilla._checks import check_choice
from keras_vanilla.plots.attention import attention_map
from keras_vanilla.plots.positions import position_map
from keras_vanilla.tokenizer.piece_names import START, source_names, target_names
from keras_vanilla.translation.encoded_texts import check_length

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
    translation: str | None = None,
) -> "Figure":
    """Draws the attention weights during the translation of a text.

    The translation is found by greedy search, or it is given, and the model then reads
    its pieces instead of its predictions. The rows of the decoder's attention are
    labelled with the predicted (or given) pieces, and the columns of its self-attention
    with the pieces that it reads.

    Args:
        translator: Translator.
        text: str.
        kind: "cross" (translation to source), "encoder" (source to source) or "decoder"
            (translation to translation).
        layer: int or None. 1 is the first; None means the last.
        head: int or None. 1 is the first; None means the mean of all.
        translation: str, or None for that of the model.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if text or translation has no piece or more pieces than the model
            takes, the kind, layer or head does not exist, or a translation is given for
            the encoder, which does not read it.
    """
    check_choice("kind", kind, tuple(KINDS))
    if kind == "encoder" and translation is not None:
        raise ValueError(
            "The encoder does not read the translation: `translation` cannot be "
            f"combined with kind='encoder'. Received: {translation!r:.60}"
        )
    model = translator.model
    source = source_of(translator, text)
    if translation is None:
        target, piece = next(translator.stream([text]))[0].ids, "piece predicted"
    else:
        target, piece = target_of(translator, translation), "piece given"
    shifted = [model.start_id, *target[:-1]]
    inputs = {"source_ids": np.array([source]), "target_ids": np.array([shifted])}
    pieces = list(map(source_names(translator.tokenizer), source))
    written = list(map(target_names(translator.tokenizer), target))
    rows, columns, key = {
        "cross": (written, pieces, "decoder/{}/cross"),
        "encoder": (pieces, pieces, "encoder/{}"),
        "decoder": (written, [START, *written[:-1]], "decoder/{}/self"),
    }[kind]
    depth = model.num_encoder_layers if kind == "encoder" else model.num_decoder_layers
    layer = _chosen(layer, depth, "layer") or depth
    weights = model.attention_weights(inputs)[key.format(layer - 1)][0]  # (N, T, S)
    head = _chosen(head, len(weights), "head")
    of_heads = f"head {head}" if head else "mean of the heads"
    return attention_map(
        weights[head - 1] if head else weights.mean(axis=0),
        rows,
        columns,
        title=f"{KINDS[kind]}, layer {layer} of {depth}, {of_heads}",
        x_axis="piece read" if kind == "decoder" else "source piece",
        y_axis="source piece" if kind == "encoder" else piece,
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
    return _with_a_piece(translator.encode([text])[0], "text", text)


def target_of(translator: "Translator", translation: str) -> list[int]:
    """Returns the target ids of a given translation, a list of int with the end.

    Raises:
        ValueError: if it has no piece or more pieces than the model takes.
    """
    ids = translator.tokenizer.encode_target([translation])[0]
    longest = translator.model.max_length
    check_length("Translation", 1, len(ids), longest, translation)
    return _with_a_piece(ids, "translation", translation)


def _with_a_piece(ids, what, text):
    if len(ids) == 1:  # the end
        raise ValueError(f"The {what} must have at least one piece. Received: {text!r}")
    return ids


def _chosen(number, count, what):
    if number is not None and not 1 <= number <= count:
        raise ValueError(
            f"`{what}` must be from 1, the first, to {count}. Received: {number}"
        )
    return number
