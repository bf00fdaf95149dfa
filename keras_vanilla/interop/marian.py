"""Converts Hugging Face's Marian models, such as OPUS-MT, to our Translator."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.safetensors_file import read_safetensors
from keras_vanilla.interop.files.stored_arrays import LazyArrays, index_of
from keras_vanilla.interop.files.torch_file import read_torch
from keras_vanilla.interop.layer_weights import (
    NamedArrays,
    assign_weights,
    model_variables,
)
from keras_vanilla.interop.marian_config import read_config, transformer_arguments
from keras_vanilla.interop.marian_tokenizer import (
    tokenizer_files,
    tokenizer_of_tokens,
)
from keras_vanilla.interop.vocabularies import filled_up
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

PARTS = {  # of a layer, our names -> theirs
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.out_proj",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention/query": "encoder_attn.q_proj",
    "cross_attention/key": "encoder_attn.k_proj",
    "cross_attention/value": "encoder_attn.v_proj",
    "cross_attention/output": "encoder_attn.out_proj",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward/inner": "fc1",
    "feed_forward/outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
KINDS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
SHARED = "model.shared.weight"
SOURCE = "model.encoder.embed_tokens.weight"
TARGET = "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"  # (1, V)
POSITIONS = ".embed_positions.weight"  # table of sinusoids in older files


def from_marian(folder: PathLike) -> Translator:
    """Converts a Marian model of Hugging Face, such as OPUS-MT.

    Ids, logits and searches are those of `MarianTokenizer` and `MarianMTModel`. Marian
    has no pad, so no search chooses it, and the other probabilities are normalised
    without it, as in Marian (and with Hugging Face's
    `generate(bad_words_ids=[[pad]], renormalize_logits=True)`). Ids without a token,
    which exist in enlarged tables, are never chosen either.

    Args:
        folder: path of a folder with `config.json`, `model.safetensors` or
            `pytorch_model.bin`, one file or several with their index, and the
            tokenizer's files, see `tokenizer_from_marian`.
    Raises:
        FileNotFoundError: if one of the files is missing.
        ValueError: if the model is not a vanilla Transformer, or a file is damaged or
            contradicts another one.
    Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in
        C++"; Tiedemann and Thottingal 2020, "OPUS-MT".
    """
    folder = Path(folder)
    config = read_config(folder)
    arguments = transformer_arguments(config)
    path, arrays = _open_weights(folder)
    readers = _readers(config, path, arrays)
    sizes = [arguments[f"{side}_vocabulary_size"] for side in ("source", "target")]
    for side, size in zip(("source", "target"), sizes, strict=True):
        table = readers.get(f"{side}_embedding", readers["source_embedding"])()
        if len(table) != size:
            raise ValueError(
                f"{path} must have a row for each of the {size} {side} ids in the "
                f"configuration. Received: a table of shape {table.shape}"
            )
    models, vocabularies, tokens = tokenizer_files(folder)
    tokenizer = tokenizer_of_tokens(
        models, vocabularies, list(map(filled_up, tokens, sizes)), arguments["start_id"]
    )
    arguments["forbidden_ids"] += range(len(tokens[1]), sizes[1])
    model = Transformer(**arguments, zero_pad=_pad_is_zero(arguments, readers))
    assign_weights(model_variables(model), LazyArrays(readers))
    return Translator(tokenizer, model)


def their_name(name: str) -> str:
    """Returns Hugging Face's name of one of our weights, such as "encoder/0/...".

    Args:
        name: str, as in `layer_weights.model_variables`.
    """
    side, index, *part, kind = name.split("/")
    return f"model.{side}.layers.{index}.{PARTS['/'.join(part)]}.{KINDS[kind]}"


def _open_weights(folder):
    """Returns the path of the weights and the arrays in it."""
    formats = {"model.safetensors": read_safetensors, "pytorch_model.bin": read_torch}
    for name, read in formats.items():
        path = folder / name
        if path.exists() or index_of(path).exists():
            return path, read(path)
    raise FileNotFoundError(
        f"{folder} must have the weights in {' or '.join(formats)}."
    )


def _readers(config, path, arrays) -> dict[str, Callable[[], np.ndarray]]:
    """Returns functions that read the weights, by our names.

    Tied tables may be stored once, under any of their names, or as equal arrays.
    """
    named = NamedArrays(arrays, path)
    shared = config["share_encoder_decoder_embeddings"]
    source, target, output = [SOURCE], [TARGET], [OUTPUT]
    if config["tie_word_embeddings"]:
        target, output = target + output, []
    if shared:
        source, target = [SHARED, *source, *target], []
    else:
        named.ignore(SHARED)
    tables = {"source_embedding": source, "target_embedding": target, "output": output}
    readers = {ours: named.one_of(names) for ours, names in tables.items() if names}
    readers["output_bias"] = named.reader(OUTPUT_BIAS, np.ravel)
    for side in ("encoder", "decoder"):
        for index in range(config[f"{side}_layers"]):
            for name in _layer_names(side):
                name = f"{side}/{index}/{name}"
                of_kernel = np.transpose if name.endswith("kernel") else None
                readers[name] = named.reader(their_name(name), of_kernel)
    named.refuse_others(lambda name: name.endswith(POSITIONS))
    return readers


def _layer_names(side):
    """Returns the names of a layer's weights."""
    parts = [part for part in PARTS if side == "decoder" or "cross" not in part]
    return [
        f"{part}/{kind}"
        for part in parts
        for kind in (("gamma", "beta") if part.endswith("norm") else ("kernel", "bias"))
    ]


def _pad_is_zero(arguments: Mapping[str, Any], readers) -> bool:
    """Returns True if the decoder starts with a vector of zeros, as in Marian."""
    if arguments["start_id"] != arguments["pad_id"]:
        return False
    table = readers.get("target_embedding", readers["source_embedding"])()
    return not table[arguments["pad_id"] : arguments["pad_id"] + 1].any()
