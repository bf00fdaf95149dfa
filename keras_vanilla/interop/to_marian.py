"""Converts our Translator to a folder of Hugging Face's Marian models."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keras_vanilla._atomic_write import atomic_path
from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.safetensors_file import write_safetensors
from keras_vanilla.interop.layer_weights import model_variables, read_weights
from keras_vanilla.interop.marian import (
    OUTPUT,
    OUTPUT_BIAS,
    SHARED,
    SOURCE,
    TARGET,
    their_name,
)
from keras_vanilla.interop.marian_config import generation_config, marian_config
from keras_vanilla.interop.vocabularies import vocabularies
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator
from keras_vanilla.translation.ensembles import check_one_model

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
        ValueError: if Marian's class does not support the model, the tokenizer adds a
            language code to each text, or the translator is an ensemble.
    Example:
        to_marian(Translator.load("de-en/translator.keras"), "de-en-marian")
    """
    check_one_model(translator, "A folder of Marian's")
    folder, model = Path(folder), translator.in_float32().model
    if folder.exists():
        raise FileExistsError(f"{folder} exists already.")
    config = marian_config(model)
    tokenizer_files = _tokenizer_files(translator.tokenizer, model.max_length)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        _write_json(temporary / "config.json", config)
        _write_json(temporary / "generation_config.json", generation_config(model))
        for name, content in tokenizer_files.items():
            if isinstance(content, bytes):
                (temporary / name).write_bytes(content)
            else:
                _write_json(temporary / name, content)
        arrays = _their_arrays(model)
        write_safetensors(temporary / "model.safetensors", arrays, {"format": "pt"})


def _their_arrays(model: Transformer) -> dict[str, np.ndarray]:
    """Returns the weights under Hugging Face's names."""
    weights = read_weights(model_variables(model))
    if model.position_layout == "interleaved":
        weights = reordered(weights, halves_first(model.d_model))
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


def halves_first(d_model: int) -> np.ndarray:
    """Returns the channels of interleaved positions in concatenated order (D,).

    Args:
        d_model: int, even.
    """
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def reordered(weights: Mapping[str, np.ndarray], order: np.ndarray) -> dict:
    """Returns a model's weights with its channels in another order.

    Args:
        weights: dict with the names of `layer_weights`.
        order: int array (D,). Channel `order[i]` becomes channel i.
    """
    return {name: _reordered(name, array, order) for name, array in weights.items()}


def _reordered(name, array, order):
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
