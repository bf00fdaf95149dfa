"""Converts the options in Marian's own model files to Transformer arguments."""

import re
from collections.abc import Mapping
from typing import Any

from keras_vanilla.interop.files.flat_yaml import parse_flat_yaml
from keras_vanilla.interop.files.npz_file import NpzArrays

OPTIONS = "special:model.yml"
ACTIVATIONS = {"relu": "relu", "swish": "silu"}
EPSILON = 1e-6  # of Marian since 1.9; earlier, it was 1e-9
VANILLA = {  # options of other architectures -> the required values
    "type": ("transformer",),
    "input-types": ([], ["sequence", "sequence"]),
    "lemma-dependency": ("",),
    "lemma-dim-emb": ("0",),
    "right-left": ("false",),
    "special-vocab": ([],),
    "transformer-attention-mask": ("default",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-disable-position-embeddings": ("false",),
    "transformer-ffn-activation": tuple(ACTIVATIONS),
    "transformer-ffn-depth": ("2",),
    "transformer-no-affine": ("false",),
    "transformer-no-bias": ("false",),
    "transformer-no-projection": ("false",),
    "transformer-pool": ("false",),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": ("false",),
    "transformer-train-positions": ("false",),  # the same before Marian 1.9
    "ulr": ("false",),
}
READ = {
    "dec-depth",
    "dim-emb",
    "dim-vocabs",
    "enc-depth",
    "output-omit-bias",
    "tied-embeddings",
    "tied-embeddings-all",
    "tied-embeddings-src",
    "transformer-decoder-dim-ffn",
    "transformer-dim-ffn",
    "transformer-heads",
    "transformer-postprocess",
    "transformer-postprocess-emb",
    "transformer-postprocess-top",
    "transformer-preprocess",
    "version",
}
IGNORED_OPTIONS = {  # options without effect, given the values above
    "bert-train-type-embeddings",
    "bert-type-vocab-size",
    "dec-cell",
    "dec-cell-base-depth",
    "dec-cell-high-depth",
    "dim-rnn",
    "enc-cell",
    "enc-cell-depth",
    "enc-type",
    "factors-combine",
    "factors-dim-emb",
    "layer-normalization",
    "separator-symbol",
    "skip",
    "transformer-aan-activation",
    "transformer-aan-depth",
    "transformer-aan-nogate",
    "transformer-alibi-shift",
    "transformer-alibi-trainable",
    "transformer-depth-scaling",
    "transformer-dim-aan",
    "transformer-guided-alignment-layer",
    "transformer-rnn-projection",
    "ulr-dim-emb",
    "ulr-trainable-transformation",
}
NORMS = {  # preprocess, postprocess, postprocess-top without dropout: our arguments
    ("", "an", ""): {"normalize_first": False, "final_norm": False},
    ("", "an", "n"): {"normalize_first": False, "final_norm": True},
    ("n", "a", ""): {"normalize_first": True, "final_norm": False},
    ("n", "a", "n"): {"normalize_first": True, "final_norm": True},
}


def read_options(arrays: NpzArrays, path: object) -> dict[str, str | list[str]]:
    """Reads the options in a model file.

    Args:
        arrays: NpzArrays of the file.
        path: the file's name in errors.
    Raises:
        ValueError: if there are none, or they describe another architecture.
    """
    if len(arrays.shapes.get(OPTIONS, ())) != 1:
        raise ValueError(
            f"{path} must have the options of a Marian model as {OPTIONS!r}. Received: "
            f"the arrays {', '.join(map(repr, sorted(arrays)[:5])) or 'none'}"
        )
    content = arrays[OPTIONS].tobytes().partition(b"\0")[0]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{OPTIONS!r} in {path} is not UTF-8: {error}.") from None
    options = parse_flat_yaml(text, f"{OPTIONS!r} in {path}")
    _check(options, path)
    return options


def transformer_arguments(
    options: Mapping[str, str | list[str]], path: object
) -> dict[str, Any]:
    """Returns the arguments that options determine, with Marian's vocabulary sizes.

    Args:
        options: dict from `read_options`.
        path: the file's name in errors.
    Raises:
        ValueError: if an option is missing, not a number, or of another architecture.
    """

    def number(name, default=None):
        return _number(path, name, options.get(name, default))

    def flag(name):
        return _flag(path, name, options.get(name, "false"))

    tied_all = flag("tied-embeddings-all")
    sizes = options.get("dim-vocabs")
    if not isinstance(sizes, list) or len(sizes) != 2:
        raise ValueError(f"{path} must have two dim-vocabs. Received: {sizes}")
    d_ff = number("transformer-dim-ffn")
    return {
        "source_vocabulary_size": _number(path, "dim-vocabs", sizes[0]),
        "target_vocabulary_size": _number(path, "dim-vocabs", sizes[1]),
        "d_model": number("dim-emb"),
        "num_heads": number("transformer-heads"),
        "d_ff": d_ff,
        "decoder_d_ff": number("transformer-decoder-dim-ffn", "0") or d_ff,
        "num_encoder_layers": number("enc-depth"),
        "num_decoder_layers": number("dec-depth"),
        "dropout": 0.1,  # for training; not stored in Marian's files
        "attention_dropout": 0.0,
        "activation": ACTIVATIONS[options["transformer-ffn-activation"]],
        "layer_norm_epsilon": EPSILON,
        "position_layout": "tensor2tensor",
        "scale_embeddings": True,
        "share_embeddings": tied_all or flag("tied-embeddings-src"),
        "tie_output": tied_all or flag("tied-embeddings"),
        "output_bias": not flag("output-omit-bias"),
        **_norms(options, path),
    }


def _check(options, path):
    for name, value in options.items():
        allowed = VANILLA.get(name)
        if allowed is not None and value not in allowed:
            choices = " or ".join(map(repr, allowed))
            raise ValueError(
                f"{path} must be a vanilla Transformer, with {name}: {choices}. "
                f"Received: {value!r:.80}"
            )
        if allowed is None and name not in READ | IGNORED_OPTIONS:
            raise ValueError(f"{path} has the unknown option {name}: {value!r:.80}.")
    for name in ("type", "transformer-ffn-activation"):
        if name not in options:
            raise ValueError(f"{path} has no option {name}.")


def _number(path, name, value):
    """Returns an option that must be an integer."""
    if value is None:
        raise ValueError(f"{path} has no option {name}.")
    if not isinstance(value, str) or not re.fullmatch("[0-9]{1,9}", value):
        raise ValueError(f"{path} must have a number as {name}. Received: {value!r}")
    return int(value)


def _flag(path, name, value):
    if value not in ("true", "false"):
        raise ValueError(f"{path} must have {name}: true or false. Received: {value!r}")
    return value == "true"


def _norms(options, path):
    """Returns the arguments for the positions of normalisations."""
    names = "preprocess", "postprocess", "postprocess-top", "postprocess-emb"
    values = tuple(str(options.get(f"transformer-{name}", "")) for name in names)
    *operations, of_embeddings = (text.replace("d", "") for text in values)
    arguments = NORMS.get(tuple(operations))
    if arguments is None or of_embeddings:
        raise ValueError(
            f"{path} must have the operations of post-norm or pre-norm layers, such as "
            "transformer-preprocess: '' and transformer-postprocess: 'dan'. Received: "
            + ", ".join(f"{n}: {v!r:.20}" for n, v in zip(names, values, strict=True))
        )
    version = re.match(r"v?(\d+)\.(\d+)", str(options.get("version", "")))
    if arguments["normalize_first"] and version:
        if (int(version[1]), int(version[2])) < (1, 11):
            raise ValueError(
                f"{path} must be of Marian 1.11 or later: before, keys and values of a "
                "pre-norm model's self-attention were not normalised. Received: "
                f"{options['version']!r:.40}"
            )
    return arguments
