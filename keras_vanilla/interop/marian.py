"""Converts Hugging Face's Marian models, such as OPUS-MT, to our Translator."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._checks import check_choice, has_form
from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.json_file import read_json_object
from keras_vanilla.interop.files.stored_arrays import (
    LazyArrays,
    index_of,
    read_safetensors,
)
from keras_vanilla.interop.files.torch_file import read_torch
from keras_vanilla.interop.layer_weights import (
    NamedArrays,
    assign_weights,
    model_variables,
)
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
ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}
DEFAULTS = {  # of Hugging Face's MarianConfig; optional in a file
    "vocab_size": 58_101,
    "decoder_vocab_size": None,
    "max_position_embeddings": 1024,
    "encoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_layers": 12,
    "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16,
    "activation_function": "gelu",
    "d_model": 1024,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "decoder_start_token_id": 58_100,
    "scale_embedding": False,
    "pad_token_id": 58_100,
    "eos_token_id": 0,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "bad_words_ids": None,
}
IDS = "pad_token_id", "eos_token_id", "decoder_start_token_id"
UNSUPPORTED = {  # settings of other architectures -> the required values
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}


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
    config = _read_config(folder)
    arguments = _transformer_arguments(config)
    path, arrays = _open_weights(folder)
    readers = _readers(config, path, arrays)
    _check_sizes(path, arguments, readers)
    sizes = [arguments[f"{side}_vocabulary_size"] for side in ("source", "target")]
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


def _read_config(folder):
    """Reads the configuration in a folder, completed by Hugging Face's defaults.

    `generation_config.json`, if there is one, has priority over `config.json`.
    """
    config = read_json_object(folder / "config.json")
    model_type = config.get("model_type")
    if model_type != "marian":
        raise ValueError(
            f"{folder / 'config.json'} must describe a model of the type 'marian'. "
            f"Received: {model_type!r}"
        )
    generation = folder / "generation_config.json"
    if generation.exists():
        config |= read_json_object(generation)
    config = DEFAULTS | UNSUPPORTED | config
    _check(folder / "config.json", config)
    return config | {name: _one_id(folder, name, config[name]) for name in IDS}


def _one_id(folder, name, value):
    """Returns an id, which may be in a list of one; several end ids are refused."""
    ids = value if isinstance(value, list) else [value]
    if len(ids) != 1 or type(ids[0]) is not int or ids[0] < 0:
        raise ValueError(
            f"{folder} must have one id as {name}, as every search here has. Received: "
            f"{value!r:.80}"
        )
    return ids[0]


def _check(path, config):
    for name, default in DEFAULTS.items():
        kind = int if default is None else type(default)
        value = config[name]
        if name in (*IDS, "bad_words_ids") or (default is None and value is None):
            continue
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError(
                f"{path} must have {name} of the type {kind.__name__}. Received: "
                f"{value!r:.80}"
            )
    for name, expected in UNSUPPORTED.items():
        if config[name] != expected:
            raise ValueError(
                f"{path} must have {name}={expected}, as Marian models have. Received: "
                f"{config[name]}"
            )
    heads = config["encoder_attention_heads"], config["decoder_attention_heads"]
    if heads[0] != heads[1]:
        raise ValueError(
            f"{path} must have equal numbers of heads in encoder and decoder. "
            f"Received: {heads[0]} and {heads[1]}"
        )
    check_choice("activation_function", config["activation_function"], [*ACTIVATIONS])


def _transformer_arguments(config):
    """Returns the arguments of the Transformer that a configuration describes."""
    shared = config["share_encoder_decoder_embeddings"]
    target_size = None if shared else config["decoder_vocab_size"]
    bad_words = config["bad_words_ids"] or []
    if not has_form(bad_words, [(int,)]):
        raise ValueError(
            "`bad_words_ids` must be words of one id each: a search here forbids ids, "
            f"not sequences. Received: {bad_words!r:.80}"
        )
    return {
        "source_vocabulary_size": config["vocab_size"],
        "target_vocabulary_size": target_size or config["vocab_size"],
        "d_model": config["d_model"],
        "num_heads": config["encoder_attention_heads"],
        "d_ff": config["encoder_ffn_dim"],
        "decoder_d_ff": config["decoder_ffn_dim"],
        "num_encoder_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "dropout": config["dropout"],
        "attention_dropout": config["attention_dropout"],
        "activation": ACTIVATIONS[config["activation_function"]],
        "position_layout": "concatenated",
        "scale_embeddings": config["scale_embedding"],
        "share_embeddings": shared,
        "tie_output": config["tie_word_embeddings"],
        "output_bias": True,
        "forbidden_ids": sorted(
            {config["pad_token_id"], *(id_ for (id_,) in bad_words)}
        ),
        "pad_id": config["pad_token_id"],
        "start_id": config["decoder_start_token_id"],
        "end_id": config["eos_token_id"],
        "max_length": config["max_position_embeddings"],
    }


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
    tables = {"source_embedding": source, "target_embedding": target, "output": output}
    readers = {ours: named.one_of(names) for ours, names in tables.items() if names}
    readers["output_bias"] = named.reader(OUTPUT_BIAS, np.ravel)
    for side in ("encoder", "decoder"):
        parts = [part for part in PARTS if side == "decoder" or "cross" not in part]
        for index in range(config[f"{side}_layers"]):  # ends at the first missing one
            for part in parts:
                for kind in ("gamma", "beta") if "norm" in part else ("kernel", "bias"):
                    name = f"{side}/{index}/{part}/{kind}"
                    of_kernel = np.transpose if kind == "kernel" else None
                    readers[name] = named.reader(their_name(name), of_kernel)
    named.refuse_others(lambda name: name == SHARED or name.endswith(POSITIONS))
    return readers


def _check_sizes(path, arguments, readers):
    """Refuses sizes that the weights do not have, before a model of them is made."""
    width = arguments["d_model"]
    inner = "{}/0/feed_forward/inner/kernel"
    shapes = {
        "source_embedding": (arguments["source_vocabulary_size"], width),
        "target_embedding": (arguments["target_vocabulary_size"], width),
        inner.format("encoder"): (width, arguments["d_ff"]),
        inner.format("decoder"): (width, arguments["decoder_d_ff"]),
    }
    for name, shape in shapes.items():
        if name in readers and readers[name]().shape != shape:
            raise ValueError(
                f"{path} must have {name} of the shape {shape}, by its configuration. "
                f"Received: {readers[name]().shape}"
            )


def _pad_is_zero(arguments: Mapping[str, Any], readers) -> bool:
    """Returns True if the decoder starts with a vector of zeros, as in Marian."""
    if arguments["start_id"] != arguments["pad_id"]:
        return False
    table = readers.get("target_embedding", readers["source_embedding"])()
    return not table[arguments["pad_id"] : arguments["pad_id"] + 1].any()
