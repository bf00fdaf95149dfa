"""Converts configurations of Hugging Face's Marian models to Transformer arguments."""

from pathlib import Path
from typing import Any

from keras_vanilla._checks import has_form
from keras_vanilla.interop.files.json_file import read_json_object
from keras_vanilla.models import Transformer

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


def read_config(folder: Path) -> dict[str, Any]:
    """Reads the configuration in a folder, completed by Hugging Face's defaults.

    Args:
        folder: path. If there is a `generation_config.json`, it has priority over
            `config.json`.
    Raises:
        FileNotFoundError: if there is no `config.json`.
        ValueError: if a file is not JSON, or describes another architecture.
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


def transformer_arguments(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of the Transformer that a configuration describes.

    Args:
        config: dict from `read_config`.
    """
    return {
        "source_vocabulary_size": config["vocab_size"],
        "target_vocabulary_size": target_vocabulary_size(config),
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
        "share_embeddings": config["share_encoder_decoder_embeddings"],
        "tie_output": config["tie_word_embeddings"],
        "output_bias": True,
        "forbidden_ids": sorted({config["pad_token_id"], *_bad_words(config)}),
        "pad_id": config["pad_token_id"],
        "start_id": config["decoder_start_token_id"],
        "end_id": config["eos_token_id"],
        "max_length": config["max_position_embeddings"],
    }


def marian_config(model: Transformer) -> dict[str, Any]:
    """Returns the configuration of a Transformer as Hugging Face's MarianConfig.

    Args:
        model: Transformer with positions that are, or will be made, "concatenated".
    Raises:
        ValueError: if Marian's models do not support the model.
    """
    _check_model(model)
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": model.source_vocabulary_size,
        "decoder_vocab_size": model.target_vocabulary_size,
        "max_position_embeddings": model.max_length,
        "d_model": model.d_model,
        "encoder_attention_heads": model.num_heads,
        "decoder_attention_heads": model.num_heads,
        "encoder_ffn_dim": model.d_ff,
        "decoder_ffn_dim": model.decoder_d_ff or model.d_ff,
        "encoder_layers": model.num_encoder_layers,
        "decoder_layers": model.num_decoder_layers,
        "num_hidden_layers": model.num_encoder_layers,
        "dropout": model.dropout,
        "attention_dropout": model.encoder_layers[0].self_attention.dropout,
        "activation_function": model.activation,
        "scale_embedding": model.scale_embeddings,
        "share_encoder_decoder_embeddings": model.share_embeddings,
        "tie_word_embeddings": model.tie_output,
        "pad_token_id": model.pad_id,
        "bos_token_id": None,
        "eos_token_id": model.end_id,
        "forced_eos_token_id": None,
        "decoder_start_token_id": model.start_id,
        **UNSUPPORTED,
    }


def generation_config(model: Transformer) -> dict[str, Any]:
    """Returns settings that make Hugging Face's `generate` our greedy search.

    Args:
        model: Transformer.
    """
    config = {
        "decoder_start_token_id": model.start_id,
        "pad_token_id": model.pad_id,
        "eos_token_id": model.end_id,
        "max_length": model.max_length + 1,  # includes the start
        "renormalize_logits": True,
    }
    if model.forbidden_ids:
        config["bad_words_ids"] = [[id_] for id_ in model.forbidden_ids]
    return config


def target_vocabulary_size(config: dict[str, Any]) -> int:
    """Returns the number of target ids in a configuration."""
    if config["share_encoder_decoder_embeddings"]:
        return config["vocab_size"]
    return config["decoder_vocab_size"] or config["vocab_size"]


def _bad_words(config):
    """Returns the ids that must not occur in outputs."""
    words = config["bad_words_ids"] or []
    if not has_form(words, [(int,)]):
        raise ValueError(
            "`bad_words_ids` must be words of one id each: a search here forbids ids, "
            f"not sequences. Received: {words!r:.80}"
        )
    return [word[0] for word in words]


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
    if config["activation_function"] not in ACTIVATIONS:
        raise ValueError(
            f"{path} must have one of the activations {sorted(ACTIVATIONS)}. Received: "
            f"{config['activation_function']!r}"
        )
    _bad_words(config)


def _check_model(model):
    """Refuses a Transformer that Marian's models do not support."""
    for name, expected in (
        ("normalize_first", False),
        ("encoder_norm", None),
        ("layer_norm_epsilon", 1e-5),
        ("source_end", True),
        ("encoder_layer", None),
        ("decoder_layer", None),
    ):
        if getattr(model, name) != expected:
            raise ValueError(
                f"A Marian model has {name}={expected}. Received: "
                f"{name}={getattr(model, name)}"
            )
    if model.position_layout == "tensor2tensor":
        raise ValueError(
            "A Marian model of Hugging Face's has position_layout='concatenated', or "
            "'interleaved' in another order. Received: 'tensor2tensor'"
        )
    activations = sorted(set(ACTIVATIONS.values()))
    if model.activation not in activations:
        raise ValueError(
            f"A Marian model has one of the activations {activations}. Received: "
            f"activation={model.activation!r}"
        )
