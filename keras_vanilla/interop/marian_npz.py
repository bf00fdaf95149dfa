"""Converts models in Marian's own format, such as OPUS-MT's zips, to our Translator."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.flat_yaml import parse_flat_yaml
from keras_vanilla.interop.files.json_file import read_json_object, read_text
from keras_vanilla.interop.files.npz_file import NpzArrays
from keras_vanilla.interop.files.stored_arrays import LazyArrays
from keras_vanilla.interop.layer_weights import (
    NamedArrays,
    assign_weights,
    model_variables,
)
from keras_vanilla.interop.marian_tokenizer import (
    PAD,
    read_model,
    tokenizer_of_tokens,
    tokens_by_id,
)
from keras_vanilla.interop.vocabularies import filled_up
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

DECODER = "decoder.yml"
SIDES = "source", "target"
LOGITS = "decoder_ff_logit_out"
ATTENTIONS = {"self_attention": "self", "cross_attention": "context"}
PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
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


def from_marian_npz(
    path: PathLike,
    vocabularies: PathLike | Sequence[PathLike] | None = None,
    source_spm: PathLike | None = None,
    target_spm: PathLike | None = None,
) -> Translator:
    """Converts a model in Marian's own format, such as those in OPUS-MT's zips.

    The positions are Marian's, with frequencies 10000^(-i / (d_model / 2 - 1)), whereas
    conversions of the same models to Hugging Face and CTranslate2 use
    10000^(-2i / d_model). As in Marian, no search chooses the unknown word. Marian has
    no pad, so it is added after the last token. Text is normalised by SentencePiece
    only, not by the scripts that come with OPUS-MT models.

    Args:
        path: path of a folder with `decoder.yml`, which names the model and the
            vocabularies; or of a `.npz` file.
        vocabularies: path of the vocabulary of source and target, or one path for each:
            `.yml`, `.json`, `.spm`, or text with one token per line. None means those
            in `decoder.yml`.
        source_spm: path of the source's SentencePiece model. None means the vocabulary
            if it is one, or else `source.spm` in the folder of the model.
        target_spm: the same for the target.
    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the model is not a vanilla Transformer, or a file is damaged or
            contradicts another one.
    Example:
        from_marian_npz("opus-2020-01-08").translate(["How are you?"])
    Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in
        C++"; its source code, versions 1.9 to 1.12.
    """
    path, listed = _model_and_vocabularies(Path(path))
    paths = _pair(listed if vocabularies is None else vocabularies)
    arrays = NpzArrays(path)
    arguments = _transformer_arguments(read_options(arrays, path), path)
    models = [
        Path(spm or (named if named.suffix == ".spm" else path.parent / f"{side}.spm"))
        for side, named, spm in zip(SIDES, paths, (source_spm, target_spm), strict=True)
    ]
    tokens = _tokens(path, paths, arguments)
    tokenizer = tokenizer_of_tokens(models, paths, tokens)
    sizes = {
        "source_vocabulary_size": tokenizer.vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    readers = _readers(arguments, sizes, arrays, path)
    fillers = range(
        arguments["target_vocabulary_size"], tokenizer.target_vocabulary_size
    )
    model = Transformer(
        **arguments | sizes,
        zero_pad=True,
        forbidden_ids=sorted({tokenizer.unknown_id, tokenizer.pad_id, *fillers}),
        pad_id=tokenizer.pad_id,
        start_id=tokenizer.pad_id,
        end_id=tokenizer.end_id,
    )
    assign_weights(model_variables(model), LazyArrays(readers))
    return Translator(tokenizer, model)


def _model_and_vocabularies(path):
    """Returns the paths of the model and of the vocabularies in `decoder.yml`."""
    if not path.is_dir():
        return path, None
    decoder = path / DECODER
    if not decoder.is_file():
        raise FileNotFoundError(
            f"There is no file {decoder}; give the path of the .npz file, and "
            "`vocabularies`."
        )
    settings = parse_flat_yaml(decoder.read_text("utf-8", "replace"), decoder)
    models, named = settings.get("models"), settings.get("vocabs")
    if not isinstance(models, list) or len(models) != 1 or not isinstance(named, list):
        raise ValueError(
            f"{decoder} must name one model in `models`, and its `vocabs`. Received: "
            f"{models!r:.80} and {named!r:.80}"
        )
    return path / models[0], [path / name for name in named]


def _pair(vocabularies):
    """Returns the paths of the source's and the target's vocabulary."""
    if isinstance(vocabularies, str | os.PathLike):
        vocabularies = [vocabularies]
    paths = [Path(path) for path in vocabularies or ()]
    if len(paths) not in (1, 2):
        raise ValueError(
            "`vocabularies` must be the path of one for source and target, or of one "
            f"each. Received: {vocabularies!r:.200}"
        )
    return [paths[0], paths[-1]]


def _tokens(path, vocabularies, arguments):
    """Returns the tokens of source and target that the model has, and the pad."""
    tokens = [read_vocabulary(each) for each in vocabularies]
    for side, named, words in zip(SIDES, vocabularies, tokens, strict=True):
        size = arguments[f"{side}_vocabulary_size"]
        if len(words) != size:
            raise ValueError(
                f"{path} has {size} words of the {side} in dim-vocabs, and {named} has "
                f"{len(words)} tokens."
            )
    return with_pad(tokens)


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


def _transformer_arguments(options, path):
    """Returns the arguments that options determine, with Marian's vocabulary sizes."""

    def number(name, default=None):
        return _number(path, name, options.get(name, default))

    def flag(name):
        value = options.get(name, "false")
        if value not in ("true", "false"):
            raise ValueError(
                f"{path} must have {name}: true or false. Received: {value!r}"
            )
        return value == "true"

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


def _number(path, name, value):
    """Returns an option that must be an integer."""
    if value is None:
        raise ValueError(f"{path} has no option {name}.")
    if not isinstance(value, str) or not re.fullmatch("[0-9]{1,9}", value):
        raise ValueError(f"{path} must have a number as {name}. Received: {value!r}")
    return int(value)


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


def _readers(arguments, sizes, arrays, path) -> dict[str, Callable[[], np.ndarray]]:
    """Returns functions that read the weights, by our names."""
    named = NamedArrays(arrays, path)
    named.ignore(OPTIONS)
    readers = {}
    for ours, theirs, shape in _weight_shapes(arguments, arrays):
        readers[ours] = named.reader(theirs, _change(ours, theirs, sizes))
        shapes = [shape] if len(shape) > 1 else [shape, (1, *shape)]
        if arrays.shapes[theirs] not in shapes or arrays.dtypes[theirs].kind != "f":
            raise ValueError(
                f"{path} must have floats of the shape {shapes[-1]} as {theirs!r}, by "
                f"its options. Received: {arrays.dtypes[theirs]} of the shape "
                f"{arrays.shapes[theirs]}"
            )
    named.refuse_others(lambda name: False)
    return readers


def _weight_shapes(arguments, arrays) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yields our name of each weight, Marian's name and its shape."""
    width = arguments["d_model"]
    source = arguments["source_vocabulary_size"], width
    target = arguments["target_vocabulary_size"], width
    if arguments["share_embeddings"]:
        yield "source_embedding", "Wemb", source
    else:
        yield "source_embedding", "encoder_Wemb", source
        yield "target_embedding", "decoder_Wemb", target
    if not arguments["tie_output"]:
        if f"{LOGITS}_W" in arrays:  # of older models
            yield "output", f"{LOGITS}_W", target[::-1]
        else:
            yield "output", f"{LOGITS}_Wt", target
    if arguments["output_bias"]:
        yield "output_bias", f"{LOGITS}_b", target[:1]
    for side in ("encoder", "decoder"):
        for i in range(arguments[f"num_{side}_layers"]):
            for ours, theirs, shape in _layer_places(arguments, side):
                yield f"{side}/{i}/{ours}", f"{side}_l{i + 1}_{theirs}", shape
        if arguments["final_norm"]:
            yield f"{side}_norm/gamma", f"{side}_top_ln_scale", (width,)
            yield f"{side}_norm/beta", f"{side}_top_ln_bias", (width,)


def _layer_places(arguments, side):
    width = arguments["d_model"]
    inner = arguments["d_ff" if side == "encoder" else "decoder_d_ff"]
    norms = {"feed_forward": "ffn_ffn"}
    for ours, theirs in ATTENTIONS.items():
        if ours == "cross_attention" and side == "encoder":
            continue
        for part, letter in PROJECTIONS.items():
            yield f"{ours}/{part}/kernel", f"{theirs}_W{letter}", (width, width)
            yield f"{ours}/{part}/bias", f"{theirs}_b{letter}", (width,)
        norms[ours] = f"{theirs}_Wo"
    yield "feed_forward/inner/kernel", "ffn_W1", (width, inner)
    yield "feed_forward/inner/bias", "ffn_b1", (inner,)
    yield "feed_forward/outer/kernel", "ffn_W2", (inner, width)
    yield "feed_forward/outer/bias", "ffn_b2", (width,)
    suffix = "_pre" if arguments["normalize_first"] else ""
    for ours, theirs in norms.items():
        yield f"{ours}_norm/gamma", f"{theirs}_ln_scale{suffix}", (width,)
        yield f"{ours}_norm/beta", f"{theirs}_ln_bias{suffix}", (width,)


def _change(ours, theirs, sizes):
    """Returns a function that flattens vectors (1, n) or adds a row for the pad."""
    side = "source" if ours == "source_embedding" else "target"
    rows = sizes[f"{side}_vocabulary_size"]

    def with_rows(array):
        array = array.T if theirs.endswith("_W") else array
        array = array.ravel() if ours == "output_bias" else array
        return np.pad(array, [(0, rows - len(array)), (0, 0)][: array.ndim])

    if ours.endswith(("embedding", "output", "output_bias")):
        return with_rows
    return None if ours.endswith("kernel") else np.ravel


def read_vocabulary(path: Path) -> list[str]:
    """Reads the tokens of a vocabulary in the order of their ids.

    Args:
        path: path of a file. Its suffix determines the format, as in Marian: ".yml",
            ".yaml" or ".json" with tokens and ids, or ".spm" for a SentencePiece model.
            Other files have one token per line.
    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it does not have this format, or the ids are not 0, 1, 2, ...
    """
    if path.suffix == ".spm":
        return [piece.piece for piece in read_model(path).pieces]
    if path.suffix == ".json":
        return tokens_by_id(path, read_json_object(path))
    text = read_text(path)
    if path.suffix in (".yml", ".yaml"):
        ids = parse_flat_yaml(text, path)
        for token, id_ in ids.items():
            if isinstance(id_, str) and id_.isdecimal():  # tokens_by_id refuses others
                ids[token] = int(id_)
        return tokens_by_id(path, ids)
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if len(set(lines)) < len(lines):
        raise ValueError(f"{path} must have each token once.")
    return tokens_by_id(path, {token: id_ for id_, token in enumerate(lines)})


def with_pad(vocabularies: Sequence[Sequence[str]]) -> list[list[str]]:
    """Adds a pad, which Marian lacks, with the same id to source and target.

    The smaller vocabulary is filled up with unused tokens.

    Args:
        vocabularies: two lists of tokens.
    """
    size = max(map(len, vocabularies))
    return [
        list(tokens) if PAD in tokens else [*filled_up(tokens, size), PAD]
        for tokens in vocabularies
    ]
