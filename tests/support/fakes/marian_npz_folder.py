"""Folders of Marian's own models, such as OPUS-MT's zips hold, with random weights."""

import json

import numpy as np
import sentencepiece
from marian_folder import CODES

OPTIONS = {
    "type": "transformer",
    "dim-emb": 12,
    "enc-depth": 2,
    "dec-depth": 3,
    "transformer-heads": 3,
    "transformer-dim-ffn": 17,
    "transformer-ffn-depth": 2,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-guided-alignment-layer": "last",
    "transformer-no-projection": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": True,
    "layer-normalization": False,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "skip": False,
    "special-vocab": [],
    "version": "v1.9.0 6f6d484 2020-03-24 16:32:43 -0700",
}
UNTIED = {"tied-embeddings-all": False}
FAMILIES = {
    "one table": {"transformer-ffn-activation": "relu"},
    "two vocabularies": {
        **UNTIED,
        "tied-embeddings": True,
        "separate": True,
        "enc-depth": 1,
        "dec-depth": 1,
    },
    "untied output": {**UNTIED, "tied-embeddings-src": True},
    "untied output of older versions": {**UNTIED, "output_name": "W"},
    "pre-norm": {
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-top": "n",
        "version": "v1.11.0",
    },
    "vocabularies of SentencePiece": {**UNTIED, "suffix": ".spm", "separate": True},
    "two sizes, no output bias": {
        "transformer-decoder-dim-ffn": 19,
        "output-omit-bias": True,
    },
}


def write_folder(folder, models, separate=False, suffix=".yml", seed=0, **changes):
    """Writes a folder with `decoder.yml`; returns its options, arrays and vocabularies.

    Args:
        models: two SentencePiece models, as bytes.
        separate: whether source and target have a vocabulary each, of two sizes.
        suffix: of the vocabularies.
        changes: other options than `OPTIONS`, and `output_name` of the output's table.
    """
    folder.mkdir(exist_ok=True)
    for side, model in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(model)
    names = ["vocab.yml"] * 2
    if suffix == ".spm":
        names = ["source.spm", "target.spm"]
        vocabularies = [_pieces(model) for model in models]
    elif separate:
        names = ["src.vocab.yml", "trg.vocab.yml"]
        vocabularies = [_pieces(models[0]) + CODES, _pieces(models[1])]
    else:
        both = dict.fromkeys(_pieces(models[0]) + _pieces(models[1]) + CODES)
        vocabularies = [list(both)] * 2
    for name, tokens in zip(names, vocabularies, strict=True):
        if suffix != ".spm":
            (folder / name).write_text(vocabulary_text(tokens), encoding="utf-8")
    output_name = changes.pop("output_name", "Wt")
    sizes = [len(tokens) for tokens in vocabularies]
    options = {**OPTIONS, "dim-vocabs": sizes, **changes}
    arrays = random_arrays(options, output_name, seed)
    write_npz(folder / "model.npz", options, arrays)
    (folder / "decoder.yml").write_text(
        f"relative-paths: true\nmodels:\n  - model.npz\nvocabs:\n  - {names[0]}\n"
        f"  - {names[1]}\nbeam-size: 6\nnormalize: 1\n"
    )
    return options, arrays, vocabularies


def write_npz(path, options, arrays, zeros=1):
    """A model file: the arrays, and the options as text that ends with zeros.

    Newer versions of Marian write as many zeros as fill a block of 256 bytes.
    """
    content = options_text(options).encode() + b"\0" * zeros
    np.savez(path, **arrays, **{"special:model.yml": np.frombuffer(content, np.int8)})


def options_text(options):
    """Options as Marian writes them."""
    return "\n".join(f"{name}:{_yaml(options[name])}" for name in sorted(options))


def _yaml(value):
    if isinstance(value, list):
        return "".join(f"\n  - {item}" for item in value) or "\n  []"
    if isinstance(value, bool):
        return f" {str(value).lower()}"
    return f" {value}" if value != "" else ' ""'


def vocabulary_text(tokens):
    """A vocabulary with plain and quoted names, and every seventh as `? name`."""
    lines = []
    for id_, token in enumerate(tokens):
        plain = token.isalpha()
        name = token if plain else json.dumps(token, ensure_ascii=False)
        lines.append(f"? {name}\n: {id_}" if id_ % 7 == 6 else f"{name}: {id_}")
    return "\n".join(lines) + "\n"


def random_arrays(options, output_name="Wt", seed=0):
    """The arrays of a model under Marian's names."""
    random = np.random.default_rng(seed)
    width, (source, target) = options["dim-emb"], options["dim-vocabs"]
    arrays = {}

    def add(name, *shape, mean=0.0):
        deviation = 0.1
        if shape[0] > 1:  # a matrix, so large that outputs differ from each other
            deviation = 1.4 / np.sqrt(shape["emb" in name])
        arrays[name] = random.normal(mean, deviation, shape).astype("float32")

    def add_norm(name, suffix=""):
        add(f"{name}_ln_scale{suffix}", 1, width, mean=1.0)
        add(f"{name}_ln_bias{suffix}", 1, width)

    if options["tied-embeddings-all"] or options["tied-embeddings-src"]:
        add("Wemb", source, width)
    else:
        add("encoder_Wemb", source, width)
        add("decoder_Wemb", target, width)
    if not options["tied-embeddings-all"] and not options["tied-embeddings"]:
        shape = (width, target) if output_name == "W" else (target, width)
        add(f"decoder_ff_logit_out_{output_name}", *shape)
    if not options.get("output-omit-bias"):
        add("decoder_ff_logit_out_b", 1, target)
    suffix = "_pre" if options["transformer-preprocess"] else ""
    for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth")):
        inner = options["transformer-dim-ffn"]
        if side == "decoder":
            inner = options.get("transformer-decoder-dim-ffn", inner)
        for number in range(1, options[depth] + 1):
            layer = f"{side}_l{number}"
            for attention in ("self", "context")[: 1 + (side == "decoder")]:
                for letter in "qkvo":
                    add(f"{layer}_{attention}_W{letter}", width, width)
                    add(f"{layer}_{attention}_b{letter}", 1, width)
                add_norm(f"{layer}_{attention}_Wo", suffix)
            add(f"{layer}_ffn_W1", width, inner)
            add(f"{layer}_ffn_b1", 1, inner)
            add(f"{layer}_ffn_W2", inner, width)
            add(f"{layer}_ffn_b2", 1, width)
            add_norm(f"{layer}_ffn_ffn", suffix)
        if options.get("transformer-postprocess-top"):
            add_norm(f"{side}_top")
    return arrays


def _pieces(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]
