"""CTranslate2's model folders, with weights, configuration and vocabularies."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._atomic_write import atomic_path, refuse_existing
from keras_vanilla._checks import has_form
from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.ctranslate2_binary import (
    Binary,
    read_binary,
    write_binary,
)
from keras_vanilla.interop.files.json_file import read_json, read_text

_SPEC = "TransformerSpec"  # an encoder and a decoder
_NEWEST_REVISION = 7
_OLDEST_REVISION = 3  # earlier, the number of heads was in the spec's name
_CONFIG_VERSION = 6  # of `model.bin`; earlier versions have no configuration file
_OWN_SCALES = 0  # config["quantization_type"] of CTranslate2's scales; others are AWQ
_INT8_PEAK = np.float32(127)
_INT16_SCALE = np.float32(1000)  # of int16 weights without a stored scale
_TOKENS_BEFORE = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
_FLAGS_BEFORE = {
    "with_source_bos": False,
    "with_source_eos": False,
    "with_target_bos": True,
    "user_decoder_start_tokens": False,
}
_NAMES_BEFORE = {  # name today: name in older revisions
    "encoder/embeddings_0/weight": "encoder/embeddings/weight",
    "encoder/scale_embeddings": "encoder/embeddings/multiply_by_sqrt_depth",
    "decoder/scale_embeddings": "decoder/embeddings/multiply_by_sqrt_depth",
    "encoder/num_heads": "num_heads",
    "encoder/pre_norm": "pre_norm",
    "encoder/activation": "activation",
    "encoder/embeddings_merge": "embeddings_merge",
    "decoder/num_heads": "num_heads",
    "decoder/pre_norm": "pre_norm",
    "decoder/activation": "activation",
    "decoder/alignment_layer": "alignment_layer",
    "decoder/alignment_heads": "alignment_heads",
}


@dataclass(frozen=True)
class CTranslate2Model:
    """The content of a CTranslate2 model folder with an encoder and a decoder.

    Args:
        variables: mapping of name -> array of float32, float16, int8, int16 or int32,
            as stored; the scales of "x/weight" are "x/weight_scale".
        aliases: dict of alias -> name of a variable.
        config: dict. Content of `config.json`.
        source_vocabulary: list of tokens by id.
        target_vocabulary: the same for the target.
    """

    variables: Mapping[str, np.ndarray]
    aliases: Mapping[str, str]
    config: Mapping[str, Any]
    source_vocabulary: Sequence[str]
    target_vocabulary: Sequence[str]

    def names(self) -> list[str]:
        """The names of all variables and aliases, sorted."""
        return sorted([*self.variables, *self.aliases])

    def weights(self, name: str) -> np.ndarray:
        """Returns a variable in float32; int8 and int16 weights are dequantised.

        Args:
            name: str. A variable or an alias.
        Raises:
            KeyError: if there is no such variable.
            ValueError: if its scales are missing or do not match it.
        """
        name = self.aliases.get(name, name)
        values = self.variables[name]
        if values.dtype not in (np.int8, np.int16):
            return values.astype(np.float32, copy=False)
        try:
            return dequantize(values, self.variables.get(f"{name}_scale"))
        except ValueError as error:
            raise ValueError(f"{name!r} cannot be dequantised: {error}") from error

    def attribute(self, name: str, default: Any) -> Any:
        """Returns the single value of a variable such as "encoder/num_heads".

        Args:
            name: str. A variable or an alias.
            default: returned if there is no such variable.
        Raises:
            ValueError: if the variable has more than one value.
        """
        name = self.aliases.get(name, name)
        if name not in self.variables:
            return default
        value = self.variables[name]
        if value.size != 1:
            raise ValueError(
                f"{name!r} must be one number; its shape is {value.shape}."
            )
        return value.item()


def read_ctranslate2(folder: PathLike) -> CTranslate2Model:
    """Reads a CTranslate2 model folder; each variable is read on demand.

    Folders of CTranslate2 1.3 to 4 are supported. In older folders, renamed variables
    get their current names as aliases, and the configuration is that which CTranslate2
    gives them. A vocabulary map (`vmap.txt`) is ignored, because it changes
    translations only on request.

    Args:
        folder: path of a folder with `model.bin`, vocabularies as `.json` or `.txt`,
            and `config.json`.
    Raises:
        OSError: if one of the files is missing or cannot be read.
        ValueError: if a file is truncated or damaged, or the model is not an encoder
            and a decoder in a supported form.
    """
    folder = Path(folder)
    binary = read_binary(folder / "model.bin")
    if binary.spec != _SPEC:
        raise ValueError(
            f"{folder} must contain a {_SPEC}, an encoder and a decoder. Received: "
            f"{binary.spec!r:.80}"
        )
    if not _OLDEST_REVISION <= binary.revision <= _NEWEST_REVISION:
        raise ValueError(
            f"{folder} has the revision {binary.revision} of {_SPEC}, and only "
            f"{_OLDEST_REVISION} to {_NEWEST_REVISION} can be read; convert the "
            "original model again with CTranslate2 4."
        )
    config = _config(folder, binary)
    vocabularies = read_vocabularies(folder, config["unk_token"])
    aliases = {**_names_of_today(binary), **binary.aliases}
    return CTranslate2Model(binary.variables, aliases, config, *vocabularies)


def write_ctranslate2(
    folder: PathLike,
    model: CTranslate2Model,
    files: Mapping[str, bytes],
) -> None:
    """Writes a CTranslate2 model folder atomically.

    Args:
        folder: path that does not exist yet.
        model: CTranslate2Model, with the names of revision 7.
        files: name -> content of additional files, such as the tokenizer's.
    Raises:
        FileExistsError: if `folder` already exists, or one of `files` has the name of
            another file of the folder.
        OSError: if it cannot be written.
        ValueError: if CTranslate2 does not support the type of a variable.
    """
    folder = Path(folder)
    refuse_existing(folder)
    binary = Binary(6, _SPEC, _NEWEST_REVISION, model.variables, model.aliases)
    config = json.dumps(dict(model.config), indent=2, sort_keys=True) + "\n"
    source, target = list(model.source_vocabulary), list(model.target_vocabulary)
    sides = {"source": source, "target": target}
    sides = {"shared": target} if source == target else sides
    contents = {
        f"{side}_vocabulary.json": json.dumps(tokens, indent=2).encode()
        for side, tokens in sides.items()
    }
    contents["config.json"] = config.encode()
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        with open(temporary / "model.bin", "xb") as file:
            write_binary(file, binary)
        for name, content in [*contents.items(), *files.items()]:
            with open(temporary / name, "xb") as file:  # no file replaces another
                file.write(content)


def _names_of_today(binary):
    """Returns current names as aliases of the variables of older revisions."""
    names = {}
    for today, before in _NAMES_BEFORE.items():
        before = binary.aliases.get(before, before)
        if today not in binary.variables and before in binary.variables:
            names[today] = before
    return names


def _config(folder, binary):
    """Returns `config.json`, or the settings among the variables of older models."""
    path = folder / "config.json"
    if binary.version < _CONFIG_VERSION:
        return _config_of_variables(path, binary.variables)
    config = read_json(path)
    if not has_form(config, {"unk_token": str, "eos_token": str}):
        raise ValueError(
            f"{path} is not the configuration of a CTranslate2 model: it must have an "
            "unk_token and an eos_token."
        )
    if config.get("quantization_type", _OWN_SCALES) != _OWN_SCALES:
        raise ValueError(
            f"{path}: weights quantised by AWQ cannot be read; convert the original "
            "model with --quantization int8 or float32."
        )
    return config


def _config_of_variables(path, variables):
    config = read_json(path) if path.exists() else {}
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not the configuration of a CTranslate2 model.")
    for name, default in _TOKENS_BEFORE.items():
        config[name] = _text(path, name, variables) if name in variables else default
    flags = {
        name: bool(variables[name].any()) if name in variables else default
        for name, default in _FLAGS_BEFORE.items()
    }
    start = config["bos_token" if flags["with_target_bos"] else "eos_token"]
    return config | {
        "add_source_bos": flags["with_source_bos"],
        "add_source_eos": flags["with_source_eos"],
        "decoder_start_token": None if flags["user_decoder_start_tokens"] else start,
    }


def _text(path, name, variables):
    """Decodes a text that is stored as an array of UTF-8 bytes."""
    try:
        return str(variables[name].tobytes(), "utf-8")
    except ValueError as error:
        raise ValueError(
            f"{path.parent}: the variable {name} is not a text: {error}."
        ) from error


def read_vocabularies(folder: Path, unknown: str) -> tuple[list[str], list[str]]:
    """Reads the tokens of source and target in a model folder, by id.

    Args:
        folder: path.
        unknown: str. The token of unknown words. If a file lacks it, it follows the
            last token, as in CTranslate2.
    Raises:
        OSError: if one is missing or cannot be read.
        ValueError: if one is not a list of tokens.
    """
    shared = _vocabulary(folder, "shared", unknown)
    if shared is not None:
        return shared, shared
    source, target = (_vocabulary(folder, x, unknown) for x in ("source", "target"))
    if source is None or target is None:
        name = "source" if source is None else "target"
        raise FileNotFoundError(
            f"{folder} has neither shared_vocabulary.json nor {name}_vocabulary.json, "
            "and neither as .txt."
        )
    return source, target


def _vocabulary(folder, side, unknown):
    """Reads the tokens by id, or returns None if the file does not exist."""
    path = folder / f"{side}_vocabulary.json"
    if path.exists():
        tokens = read_json(path)
        if not isinstance(tokens, list) or any(type(t) is not str for t in tokens):
            raise ValueError(f"{path} is not a list of tokens.")
    elif (path := path.with_suffix(".txt")).exists():
        tokens = read_text(path).removesuffix("\n").split("\n")
    else:
        return None
    return tokens if unknown in tokens else [*tokens, unknown]


def dequantize(values: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Dequantises int8 or int16 weights to float32, bit for bit as CTranslate2.

        values * (1 / scale)

    Args:
        values: int8 array (rows, ...) or int16 array.
        scales: float32 array, (rows,) for int8, one value for int16. None means 1000
            for int16.
    Raises:
        ValueError: if the scales are missing, their number is wrong, or they are not
            positive.
    """
    if scales is None:
        if values.dtype != np.int16:
            raise ValueError("its scales are missing")
        scales = _INT16_SCALE
    count = len(values) if values.dtype == np.int8 and values.ndim else 1
    scales = np.asarray(scales, np.float32).reshape(-1)
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.float32(1) / scales
    # CTranslate2 1 wrote an infinite scale for a row of zeros.
    if len(scales) != count or not (np.isfinite(factors) & (scales > 0)).all():
        raise ValueError(
            f"{values.dtype} weights of shape {values.shape} must have {count} scales, "
            f"all positive. Received: {scales[:5]} of {len(scales)}"
        )
    weights = values.astype(np.float32)
    weights *= factors.reshape(-1, *[1] * (values.ndim - 1)) if values.ndim else factors
    return weights


def quantize_int8(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantises weights to int8 as CTranslate2's converters do.

        values = round(weights * scale),  scale = 127 / max |weights| in each row

    Args:
        weights: float32 array (rows, columns).
    Returns:
        Int8 array (rows, columns) and the scales, float32 array (rows,).
    """
    peaks = np.abs(weights).max(axis=1)
    peaks[peaks == 0] = _INT8_PEAK
    peaks = np.maximum(peaks, _INT8_PEAK / np.finfo(np.float32).max)
    scales = _INT8_PEAK / peaks
    return np.rint(weights * scales[:, None]).astype(np.int8), scales
