"""Converts our Translator to a folder of Hugging Face's Marian models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from keras_vanilla._atomic_write import atomic_path, refuse_existing
from keras_vanilla._checks import check_choice
from keras_vanilla._types import PathLike
from keras_vanilla.interop.layer_weights import model_variables, read_weights
from keras_vanilla.interop.marian import (
    ACTIVATIONS,
    OUTPUT,
    OUTPUT_BIAS,
    SHARED,
    SOURCE,
    TARGET,
    UNSUPPORTED,
    their_name,
)
from keras_vanilla.interop.vocabularies import vocabularies
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

TABLES = {"target_embedding": TARGET, "output": OUTPUT}
# "interleaved" and "concatenated" positions differ only in the order of the channels.
# If the weights are reordered as well, the outputs do not change.
INPUTS_ARE_CHANNELS = ("query", "key", "value", "inner")
OUTPUTS_ARE_CHANNELS = ("output", "outer")


def to_marian(translator: Translator, folder: PathLike) -> None:
    """Writes a Translator as a folder that `transformers` loads.

    `MarianMTModel` and `MarianTokenizer`, loaded with `from_pretrained(folder)`,
    compute the same logits and ids. To convert interleaved positions to concatenated
    ones, all channels are reordered, which does not change the results.

    Args:
        translator: Translator of a post-norm Transformer, with a `Tokenizer`.
        folder: path of a folder that does not exist.
    Raises:
        FileExistsError: if the folder exists.
        TypeError: if the tokenizer is not a SentencePiece `Tokenizer`.
        ValueError: if Marian's class does not support the model, or the tokenizer adds
            a language code to each text.
    Example:
        to_marian(Translator.load("de-en/translator.keras"), "de-en-marian")
    """
    folder, model = Path(folder), translator.in_float32().model
    refuse_existing(folder)
    _check_model(model)
    config = _config(model)
    tokenizer_files = _tokenizer_files(translator.tokenizer, model.max_length)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        _write_json(temporary / "config.json", config)
        _write_json(temporary / "generation_config.json", _generation_config(model))
        for name, content in tokenizer_files.items():
            if isinstance(content, bytes):
                (temporary / name).write_bytes(content)
            else:
                _write_json(temporary / name, content)
        arrays = {  # without the copy, the bytes of transposed arrays are not in order
            name: np.ascontiguousarray(array)
            for name, array in _their_arrays(model).items()
        }
        save_file(arrays, temporary / "model.safetensors", {"format": "pt"})


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
    layouts = "concatenated", "interleaved"  # in another order
    check_choice("position_layout", model.position_layout, layouts)
    check_choice("activation", model.activation, sorted(set(ACTIVATIONS.values())))


def _config(model: Transformer) -> dict[str, Any]:
    """Returns Hugging Face's MarianConfig, for positions made "concatenated"."""
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


def _generation_config(model: Transformer) -> dict[str, Any]:
    """Returns settings that make Hugging Face's `generate` our greedy search."""
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


def _their_arrays(model: Transformer) -> dict[str, np.ndarray]:
    """Returns the weights under Hugging Face's names."""
    weights = read_weights(model_variables(model))
    if model.position_layout == "interleaved":
        order = np.arange(model.d_model).reshape(-1, 2).T.ravel()  # sines, then cosines
        weights = {name: _reordered(name, x, order) for name, x in weights.items()}
    if model.zero_pad:  # theirs is the row in the table
        for name in {"source_embedding", "target_embedding"} & set(weights):
            weights[name][model.pad_id] = 0.0
    tables = TABLES | {"source_embedding": SHARED if model.share_embeddings else SOURCE}
    bias = weights.pop("output_bias", np.zeros(model.target_vocabulary_size, "float32"))
    arrays = {OUTPUT_BIAS: bias[None]}
    for name, array in weights.items():
        if name in tables:
            arrays[tables[name]] = array
        else:
            is_kernel = name.endswith("kernel")
            arrays[their_name(name)] = array.T if is_kernel else array
    return arrays


def _tokenizer_files(tokenizer, max_length) -> dict[str, bytes | dict]:
    source, target = (
        {token: id_ for id_, token in enumerate(tokens)}
        for tokens in vocabularies(tokenizer, "A Marian model")
    )
    config = {
        "tokenizer_class": "MarianTokenizer",
        "model_max_length": max_length,
        "separate_vocabs": source != target,
        "clean_up_tokenization_spaces": False,
    }
    files = {
        "source.spm": tokenizer.source_model,
        "target.spm": tokenizer.target_model,
        "vocab.json": source,
        "tokenizer_config.json": config,
    }
    return files | ({"target_vocab.json": target} if source != target else {})


def _write_json(path, content):
    text = json.dumps(content, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")


def _reordered(name, array, order):
    """Returns a weight whose channel i was channel `order[i]`."""
    *_, part, kind = ("", *name.split("/"))
    if kind.endswith("_embedding") or kind == "output":  # (V, D)
        return array[:, order]
    if part.endswith("_norm"):  # (D,)
        return array[order]
    if part in INPUTS_ARE_CHANNELS:
        return array[order] if kind == "kernel" else array
    if part in OUTPUTS_ARE_CHANNELS:
        return array[..., order]  # (.., D) and (D,)
    return array  # the bias of the logits (V,)
