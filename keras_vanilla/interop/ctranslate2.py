"""CTranslate2 models, also in Argos packages, to our Translator and its tokens."""

import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._types import PathLike
from keras_vanilla.interop.argos_package import opened_package
from keras_vanilla.interop.ctranslate2_names import (
    ACTIVATIONS,
    EMBEDDINGS,
    NO_NAMES,
    OUTPUT,
    OUTPUT_BIAS,
    POSITIONS,
    STACKS,
    fused_weights,
    last_norm,
)
from keras_vanilla.interop.ctranslate2_tokenizer import tokenizer_from_ctranslate2
from keras_vanilla.interop.files.ctranslate2_file import (
    CTranslate2Model,
    read_ctranslate2,
)
from keras_vanilla.interop.files.stored_arrays import LazyArrays, Reader
from keras_vanilla.interop.layer_weights import (
    NamedArrays,
    assign_weights,
    layout_of,
    model_variables,
)
from keras_vanilla.models import Transformer
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation import Translator

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


def from_ctranslate2(path: PathLike) -> Translator:
    """Converts a CTranslate2 model, such as those of Argos and LibreTranslate.

    Ids, logits and searches are those of CTranslate2. Int8 and float16 weights become
    float32. Unknown ids have no text, whereas Argos copies a word of the source.
    Dropout, which only training needs, has its default value.

    Args:
        path: path of a folder with `model.bin`, its vocabularies, and the SentencePiece
            models `source.spm` and `target.spm`, or `sentencepiece.model` for both
            languages; or of an Argos package, a `.argosmodel` or its unpacked folder.
    Raises:
        OSError: if a file is missing or cannot be read.
        ValueError: if the model is not a vanilla Transformer, a file is damaged, or the
            files contradict each other.
    Example:
        from_ctranslate2("translate-en_de-1_0.argosmodel").translate(["Good morning."])
    Source: Klein et al. 2020, "The OpenNMT Neural Machine Translation Toolkit".
    """
    with opened_package(path) as folder:
        content = read_ctranslate2(folder)
        _check_architecture(folder, content)
        settings = _transformer_settings(folder, content)
        tokenizer = tokenizer_from_ctranslate2(folder, content, settings["zero_pad"])
        tables = _tables(content)
        readers = _readers(folder, content, tokenizer, tables)
        model = Transformer(
            **settings,
            **_choices(folder, content, tokenizer, tables),
            **_sizes(content, readers),
            **position_settings(folder, content),
        )
        assign_weights(model_variables(model), LazyArrays(readers))
    return Translator(tokenizer, model)


def is_ctranslate2(path: Path) -> bool:
    """Returns True if a path looks like input of `from_ctranslate2`.

    Args:
        path: path of a file or folder.
    """
    if path.is_dir():
        return any((path / name).exists() for name in ("model.bin", "model/model.bin"))
    return path.suffix == ".argosmodel"


def _check_architecture(folder, content):
    """Refuses settings that a vanilla Transformer does not have."""
    for side in STACKS:
        for name, what in MUST_BE_FALSE.items():
            if content.attribute(f"{side}/{name}", 0):
                raise _other(folder, what, f"{side}/{name}")
    if content.config.get("add_source_bos"):
        raise _other(folder, "a start before each source", "add_source_bos")
    if content.config.get("decoder_start_token") is None:
        raise ValueError(
            f"{folder} has no decoder_start_token: its translations begin with a token "
            "that the user gives, such as a language. That cannot be converted."
        )


def _transformer_settings(folder, content):
    """Returns the arguments of the Transformer that a model's settings determine."""
    config = content.config
    number = _of_both(folder, content, "activation", 0)
    activations = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    if number not in activations:
        raise _other(folder, f"the activation {NO_NAMES.get(number)}", number)
    from_zeros = _starts_from_zeros(content)
    # Marian's sources have an end; without the flag, the tokenizer must add it.
    is_marian = from_zeros and config.get("decoder_start_token") == config["eos_token"]
    epsilon = config.get("layer_norm_epsilon")
    return {
        "num_heads": _of_both(folder, content, "num_heads", 8),
        "normalize_first": bool(_of_both(folder, content, "pre_norm", True)),
        "activation": activations[number],
        "scale_embeddings": _of_both(folder, content, "scale_embeddings", 1, _scales),
        "layer_norm_epsilon": 1e-5 if epsilon is None else epsilon,
        "zero_pad": from_zeros,
        "source_end": is_marian or bool(config.get("add_source_eos")),
    }


def _starts_from_zeros(content):
    """Returns True if the decoder starts with a vector of zeros, as in Marian."""
    return bool(content.attribute("decoder/start_from_zero_embedding", False))


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


def _readers(
    folder: Path,
    content: CTranslate2Model,
    tokenizer: Tokenizer,
    tables: Mapping[str, str],
) -> dict[str, Reader]:
    """Returns functions that read the weights, by our names."""
    variables = {name: partial(content.weights, name) for name in content.variables}
    named = NamedArrays(LazyArrays(variables), folder)

    def reader(name, change):
        return named.reader(content.aliases.get(name, name), change)

    readers = {}
    for ours, theirs in (tables | _bias(content)).items():
        tokens, size = content.target_vocabulary, tokenizer.target_vocabulary_size
        if ours == "source_embedding":
            tokens, size = content.source_vocabulary, tokenizer.vocabulary_size
        readers[ours] = reader(theirs, partial(_with_rows, theirs, len(tokens), size))
    depths = {side: _depth(content, side) for side in STACKS}
    parts = fused_weights(depths, _has_last_norm(content))
    for theirs, ours in parts.items():
        for index, name in enumerate(ours):
            readers[name] = reader(theirs, partial(_part, theirs, index, len(ours)))
    known = {content.aliases.get(x, x) for x in (*SETTINGS, *POSITIONS.values())}
    named.refuse_others(
        lambda name: name in known or "/" not in name or name.endswith("/weight_scale")
    )
    return readers


def _tables(content: CTranslate2Model) -> dict[str, str]:
    """Our names of tables -> theirs, without tables that are tied to another."""
    source, target = EMBEDDINGS.values()
    tables = {"source_embedding": source}
    if not _are_one(content, source, target):
        tables["target_embedding"] = target
    if not _are_one(content, target, OUTPUT):
        tables["output"] = OUTPUT
    return tables


def _are_one(content, name, other):
    """Returns True if two variables are aliases or have equal values."""
    name, other = (content.aliases.get(each, each) for each in (name, other))
    if name == other or not {name, other} <= set(content.variables):
        return name == other
    return np.array_equal(content.weights(name), content.weights(other))


def _depth(content, side):
    """The number of layers in a stack."""
    names = (re.match(rf"{side}/layer_(\d+)/", name) for name in content.names())
    return len({name[1] for name in names if name})


def _has_last_norm(content):
    names = set(content.names())
    return any(names & set(last_norm(side)) for side in STACKS)


def _bias(content):
    return {"output_bias": OUTPUT_BIAS} if OUTPUT_BIAS in content.names() else {}


def _with_rows(name, tokens, size, array):
    """Adds rows of zeros to a table for ids that were added to the vocabulary.

    A bias of -inf, which forbids an id, also becomes zero.
    """
    if len(array) != tokens:
        raise ValueError(
            f"{name!r} must have a row for each of the {tokens} tokens in the "
            f"vocabulary. Received: {len(array)} rows"
        )
    array = np.where(np.isneginf(array), np.float32(0), array)
    return np.pad(array, [(0, size - tokens)] + [(0, 0)] * (array.ndim - 1))


def _part(name, index, count, array):
    """Returns one of several matrices, or biases, that are stacked vertically."""
    if len(array) % count:
        raise ValueError(
            f"{name!r} must have the rows of {count} equal matrices, one for each of "
            f"all heads. Received: {len(array)} rows"
        )
    rows = len(array) // count
    return array[index * rows : (index + 1) * rows].T


def _choices(
    folder: Path,
    content: CTranslate2Model,
    tokenizer: Tokenizer,
    tables: Mapping[str, str],
) -> dict[str, Any]:
    """Returns the arguments of the Transformer for its ids and its tables."""
    size = tokenizer.target_vocabulary_size
    forbidden = set(range(len(content.target_vocabulary), size))
    if _bias(content):
        forbidden |= set(np.flatnonzero(np.isneginf(content.weights(OUTPUT_BIAS))))
    return {
        "share_embeddings": "target_embedding" not in tables,
        "tie_output": "output" not in tables,
        "output_bias": bool(_bias(content)),
        "final_norm": _has_last_norm(content),
        "forbidden_ids": sorted(map(int, forbidden)),
        "pad_id": tokenizer.pad_id,
        "start_id": tokenizer.start_id,
        "end_id": tokenizer.end_id,
        "source_vocabulary_size": tokenizer.vocabulary_size,
        "target_vocabulary_size": size,
    }


def _sizes(content, readers: Mapping[str, Reader]) -> dict[str, int]:
    """Returns the widths and depths of the Transformer."""
    d_ff, decoder_d_ff = (
        len(readers[f"{side}/0/feed_forward/inner/bias"]()) for side in STACKS
    )
    return {
        "d_model": readers["source_embedding"]().shape[1],
        "d_ff": d_ff,
        "decoder_d_ff": None if decoder_d_ff == d_ff else decoder_d_ff,
        **{f"num_{side}_layers": _depth(content, side) for side in STACKS},
    }


def position_settings(folder: Path, content: CTranslate2Model) -> dict[str, Any]:
    """Returns the layout and the number of positions."""
    names, layouts, lengths = set(content.names()), set(), []
    for name in POSITIONS.values():
        if name not in names:
            raise ValueError(
                f"{folder} has no table {name!r}: without it, positions begin with 1, "
                "as in OpenNMT-tf, and the model cannot be converted."
            )
        table = content.weights(name)
        layouts.add(layout_of(table.reshape(-1, table.shape[-1])))
        lengths.append(len(table))
    if len(layouts) > 1:
        raise ValueError(
            f"{folder} must have one layout of positions. Received: {sorted(layouts)}"
        )
    return {"position_layout": layouts.pop(), "max_length": min(lengths)}
