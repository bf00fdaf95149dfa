"""Freezes parts of a Transformer."""

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from keras_vanilla._checks import check_choice, check_list

if TYPE_CHECKING:
    from keras_vanilla.models.transformer import Transformer

PARTS = ("decoder", "embeddings", "encoder")


def checked_parts(parts: str | Collection[str]) -> tuple[str, ...]:
    """Checks the names of parts; returns them sorted, without duplicates.

    Args:
        parts: list, tuple or set of names, or a single name.
    Raises:
        TypeError: if it is none of these.
        ValueError: if a name is not among `PARTS`, or all parts are named.
    """
    names = [parts] if isinstance(parts, str) else parts
    names = check_list("freeze", names, "parts")
    chosen = tuple(sorted({check_choice("freeze", name, PARTS) for name in names}))
    if chosen == PARTS:
        raise ValueError(
            "`freeze` must leave something to train. Received: all parts, "
            f"{', '.join(PARTS)}"
        )
    return chosen


@contextlib.contextmanager
def frozen(model: "Transformer", parts: Collection[str]) -> Iterator[None]:
    """Context manager in which some parts of a model are not trainable.

    Args:
        model: Transformer. Compile it inside the context.
        parts: names among `PARTS`. "encoder" and "decoder" are the layers and the final
            normalisation; a tied output projection is part of "embeddings".
    """
    output = [model.decoder_norm, model.output_projection, model.logits_bias]
    layers_of = {
        "embeddings": [model.source_embedding, model.target_embedding],
        "encoder": [*model.encoder_layers, model.encoder_norm],
        "decoder": [*model.decoder_layers, *output],
    }
    layers = [layer for part in parts for layer in layers_of[part]]
    weights = [w for layer in layers if layer is not None for w in layer.weights]
    weights = [weight for weight in weights if weight.trainable]
    for weight in weights:
        weight.trainable = False
    try:
        yield
    finally:
        for weight in weights:
            weight.trainable = True
