"""Reads the architecture of a CTranslate2 model from its settings."""

import math
from pathlib import Path
from typing import Any

from keras_vanilla.interop.ctranslate2_names import (
    ACTIVATIONS,
    EMBEDDINGS,
    NO_NAMES,
    STACKS,
)
from keras_vanilla.interop.files.ctranslate2_file import CTranslate2Model

READ = ("num_heads", "pre_norm", "activation", "scale_embeddings")
READ += ("start_from_zero_embedding",)
WITHOUT_EFFECT = (  # on the translations of one model with one vocabulary for words
    "alignment_layer",
    "alignment_heads",
    "embeddings_merge",
    "alibi_use_positive_positions",
    "scale_alibi",
)
MUST_BE_FALSE = {"alibi": "ALiBi", "multi_query_attention": "multi-query attention"}
SETTINGS = {
    f"{side}/{name}"
    for side in STACKS
    for name in (*READ, *WITHOUT_EFFECT, *MUST_BE_FALSE)
}
FOREIGN = {  # part of a variable's name -> the feature that uses it
    "relative_": "relative positions",
    "rotary_": "rotary positions",
    "linear_0_noact": "gated feed-forward networks",
    "num_heads_kv": "multi-query attention",
    "layernorm_embedding": "a normalisation of the embeddings",
    "shared_layer_norm": "parallel residuals",
    "input_layer_norm": "parallel residuals or two normalisations a sub-layer",
    "sliding_window": "attention in a window",
    "project_": "a projection of the embeddings",
    "q_norm": "normalised queries",
    "encoder/embeddings_1": "several features of each word",
}


def check_architecture(folder: Path, content: CTranslate2Model) -> None:
    """Refuses architectures other than the vanilla Transformer by variable names.

    Args:
        folder: path, for errors.
        content: CTranslate2Model.
    Raises:
        ValueError: if the model has rotary or relative positions, gated feed-forward
            networks, multi-query attention and the like.
    """
    for part, what in FOREIGN.items():
        for name in content.variables:
            if part in name:
                raise _other(folder, what, name)
    for side in STACKS:
        for name, what in MUST_BE_FALSE.items():
            if content.attribute(f"{side}/{name}", 0):
                raise _other(folder, what, f"{side}/{name}")
    if content.config.get("multi_query_attention"):
        raise _other(folder, "multi-query attention", "multi_query_attention")
    if len(content.source_vocabularies) != 1:
        raise _other(folder, FOREIGN["encoder/embeddings_1"], "source_2_vocabulary")
    if content.config.get("add_source_bos"):
        raise _other(folder, "a start before each source", "add_source_bos")
    if content.config.get("decoder_start_token") is None:
        raise ValueError(
            f"{folder} has no decoder_start_token: its translations begin with a token "
            "that the user gives, such as a language. That cannot be converted."
        )


def transformer_settings(folder: Path, content: CTranslate2Model) -> dict[str, Any]:
    """Returns the arguments of the Transformer that a model's settings determine.

    Args:
        folder: path, for errors.
        content: CTranslate2Model.
    Raises:
        ValueError: if encoder and decoder differ, or our layers do not support a value.
    """
    config = content.config
    number = _of_both(folder, content, "activation", 0)
    activations = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    if number not in activations:
        raise _other(folder, f"the activation {NO_NAMES.get(number)}", number)
    from_zeros = starts_from_zeros(content)
    epsilon = config.get("layer_norm_epsilon")
    return {
        "num_heads": _of_both(folder, content, "num_heads", 8),
        "normalize_first": bool(_of_both(folder, content, "pre_norm", True)),
        "activation": activations[number],
        "scale_embeddings": _of_both(folder, content, "scale_embeddings", 1, _scales),
        "layer_norm_epsilon": 1e-5 if epsilon is None else epsilon,
        "zero_pad": from_zeros,
        "source_end": _has_source_end(config, from_zeros),
    }


def starts_from_zeros(content: CTranslate2Model) -> bool:
    """Returns True if the decoder starts with a vector of zeros, as in Marian."""
    return bool(content.attribute("decoder/start_from_zero_embedding", False))


def _has_source_end(config, from_zeros):
    """Returns True if sources need an end id.

    Marian's sources have an end; without the flag, the tokenizer must add it.
    """
    if from_zeros and config.get("decoder_start_token") == config["eos_token"]:
        return True
    return bool(config.get("add_source_eos"))


def _of_both(folder, content, name, default, read=None):
    """Returns a setting that must be equal in encoder and decoder."""
    values = [content.attribute(f"{side}/{name}", default) for side in STACKS]
    if read is not None:
        values = [read(folder, content, value) for value in values]
    if values[0] != values[1]:
        raise ValueError(
            f"{folder} must have one {name} in encoder and decoder. Received: "
            f"{values[0]} and {values[1]}"
        )
    return values[0]


def _scales(folder, content, value):
    """Returns True if a flag or a number scales the embeddings by sqrt(d)."""
    if isinstance(value, int):
        return bool(value)
    d_model = content.weights(EMBEDDINGS["target_embedding"]).shape[1]
    for scales, factor in ((True, math.sqrt(d_model)), (False, 1.0)):
        if math.isclose(value, factor, rel_tol=1e-3):  # float16 too
            return scales
    raise ValueError(
        f"{folder} must multiply embeddings by {math.sqrt(d_model):.4g} or 1. "
        f"Received: {value}"
    )


def _other(folder, what, name):
    return ValueError(
        f"{folder} is not a vanilla Transformer: it has {what}. Received: {name!r}"
    )
