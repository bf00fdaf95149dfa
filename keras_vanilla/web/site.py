"""Writes the page as a folder for any static file host, with its guided tour."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_vanilla import export
from keras_vanilla._atomic_write import atomic_path, refuse_unwritable
from keras_vanilla._types import PathLike
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.export.config import ExportConfig
from keras_vanilla.export.conversion import check_translator
from keras_vanilla.tokenizer.piece_names import source_names, target_names
from keras_vanilla.translation import Translator
from keras_vanilla.web.runtime import PAGE, runtime_folder
from keras_vanilla.web.server import MODEL, check_model

HIDDEN_LINK, LINK = ' href="inside/index.html" hidden>', ' href="inside/index.html">'
NOT_IN_A_SITE = (
    "package.json",
    "package-lock.json",
    "node.js",
    "node_worker.js",
    "polyfill.js",
    "manifest.js",
    "languages.js",
)
OTHER_VARIANTS = ("threaded", "jspi")  # of LiteRT.js, which the page does not load
# The sizes of the tour.
SHOWN = 8  # numbers per vector
MEMORY_SHOWN = 32
CANDIDATES = 5  # next pieces
DIGITS = 4
MOST_READ = 0.8  # of a weight, so that a head visibly mixes values


def write_site(
    translator: Translator | None,
    folder: PathLike,
    runtime: str | None = None,
    say: Callable[[str], None] = print,
    *,
    model: PathLike | None = None,
    sample: Sequence[str] | None = None,
    **settings: Any,
) -> None:
    """Writes a site that translates in any browser, and shows how the model works.

    Any static file host can serve it. The folder contains

        index.html              the page that translates
        inside/index.html       the page that shows the inside of the model
        inside/tour.json        its guided tour, if the model has an example
        translator.tflite, .md  the file of the form "text", and its model card
        inside.tflite           the same model in the form "inside"
        runtime/                LiteRT.js, 19 MB, of which a browser loads 10

    Args:
        translator: Translator. None, with `model`, omits the inside of the model.
        folder: path; the folder is written atomically.
        runtime: str or None. Folder of an existing installation of LiteRT.js; None
            means the user's cache, to which it is downloaded once.
        say: function that is called with a sentence before a step that takes a while.
        model: path of an existing `.tflite` file of the form "text", used as
            translator.tflite; None exports the translator.
        sample: list of str or None, as in `export.tflite`.
        settings: arguments of `ExportConfig.of`, such as `quantize`, `max_bytes` and
            `name`. Those of the search apply only to translator.tflite.
    Raises:
        FileExistsError: if `folder` exists.
        FileNotFoundError: if `model` does not exist.
        TypeError, ValueError, RuntimeError: as in `export.tflite`, or if LiteRT.js is
            missing and cannot be downloaded, see `runtime_folder`, or if `model` is not
            a translator's, or has another form.
    """
    if model is None or translator is not None:
        check_translator(translator)
    if model is not None:
        check_model(model)
    config = ExportConfig.of(**settings)
    if translator is not None and config.about.name is None:  # not that of the file
        config = ExportConfig.of(config, name=translator.about.name or "Translator")
    config = dataclasses.replace(config, form="text")
    refuse_unwritable(folder)
    litert = runtime_folder(runtime, say)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        if model is None:
            file = temporary / MODEL
            export.tflite(translator, file, config, sample=sample, say=say)
        else:
            shutil.copyfile(model, temporary / MODEL)
        _copy_page(temporary, with_inside=translator is not None)
        if translator is not None:
            inside = dataclasses.replace(
                config, form="inside", decoding=DecodingConfig(), outputs=()
            )
            file = temporary / "inside.tflite"
            export.tflite(translator, file, inside, sample=sample, say=say)
            _write_tour(translator, temporary, say)
        _copy_runtime(litert, temporary / "runtime")


def _write_tour(translator, folder, say):
    """Writes the tour of the first example, if the file has one."""
    examples = export.read_description(folder / "inside.tflite").examples
    if examples:
        say("Recording the guided tour.")
        content = json.dumps(tour(translator, examples[0]), ensure_ascii=False)
        (folder / "inside" / "tour.json").write_text(content, encoding="utf-8")


def _copy_page(folder, with_inside):
    left_out = NOT_IN_A_SITE if with_inside else (*NOT_IN_A_SITE, "inside")
    ignored = shutil.ignore_patterns(*left_out, "*.d.ts")
    shutil.copytree(PAGE, folder, ignore=ignored, dirs_exist_ok=True)
    if with_inside:
        index = folder / "index.html"
        page = index.read_text(encoding="utf-8")
        index.write_text(page.replace(HIDDEN_LINK, LINK), encoding="utf-8")


def _copy_runtime(litert, folder):
    """Copies the files in npm's folder `@litertjs` that a browser may load."""
    for path in litert.rglob("*"):
        is_code = path.suffix in (".js", ".wasm")
        if is_code and not any(name in path.name for name in OTHER_VARIANTS):
            copy = folder / path.relative_to(litert)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def tour(translator: Translator, text: str) -> dict[str, Any]:
    """Returns the numbers that the tour of a text shows, for JSON.

    Args:
        translator: Translator.
        text: str.
    Returns:
        Dict of the text and its translation; `pieces` (S names) and their `ids`;
        `written` (T names) and the `beginnings` before each; the sizes of the model;
        the first 8 numbers of the `embedding` at `position`, of `positional` and of
        their `sum`; for this position and the `head` (from 1) of the encoder's first
        layer: `query` (H), `keys` and `values` (S, H), `scores` and `weights` (S) and
        `output` (H); `memory` (S, 32); and for each step `cross` (S), the weights of
        the decoder layer `cross_layer` (from 1), which aligns best, averaged over its
        heads, and `candidates`, the most probable names with their probabilities.
        Position and head are those with the highest attention of a word to another one,
        if possible of at most 0.8 and after the first position.
    Raises:
        ValueError: if the text has more tokens than the model takes.
    """
    translator = translator.in_float32()
    model, tokenizer = translator.model, translator.tokenizer
    (source,) = translator.encode([text])
    target = translator.search([source])[0].tolist()
    if model.end_id in target:
        target = target[: target.index(model.end_id) + 1]
    arrays = {
        "source_ids": np.array([source], "int32"),
        "target_ids": np.array([[model.start_id, *target[:-1]]], "int32"),
    }
    weights = model.attention_weights(arrays)
    layer = alignment_layer(model.num_decoder_layers)
    cross = weights[f"decoder/{layer}/cross"][0].mean(axis=0)  # (T, S)
    source_name, target_name = source_names(tokenizer), target_names(tokenizer)
    pieces = [_shown(source_name(id_), model, id_) for id_ in source]
    return {
        "text": text,
        "translation": tokenizer.decode([target])[0],
        "pieces": pieces,
        "ids": source,
        "beginnings": tokenizer.decode([target[:i] for i in range(len(target))]),
        "written": [_shown(target_name(id_), model, id_) for id_ in target],
        "num_encoder_layers": model.num_encoder_layers,
        "num_decoder_layers": model.num_decoder_layers,
        "num_heads": model.num_heads,
        "d_model": model.d_model,
        "vocabulary_size": model.target_vocabulary_size,
        **_head(model, arrays["source_ids"], weights["encoder/0"][0], pieces),
        "memory": _numbers(model.encode(arrays["source_ids"])[0][0, :, :MEMORY_SHOWN]),
        "cross": _numbers(cross),
        "cross_layer": layer + 1,
        "candidates": _candidates(model, arrays, target_name),
    }


def _head(model, source_ids, weights, pieces):
    """Computes one position and head of the first layer, from the ids to its output."""
    is_word = np.array([any(map(str.isalpha, name)) for name in pieces])
    is_word &= source_ids[0] != model.end_id
    to_others = weights * (1 - np.eye(len(pieces)))  # (N, S, S)
    if is_word.sum() > 1:
        to_others *= np.outer(is_word, is_word)
    head, position = chosen_head(to_others)
    layer = model.encoder.layers[0]
    embedded = model.encoder.embedding(source_ids)
    summed = model.encoder.positions(embedded)
    inputs = layer.self_attention_residual.before(summed)
    projected = layer.self_attention.project(inputs, inputs, inputs)
    query, keys, values = (ops.convert_to_numpy(each)[0, head] for each in projected)
    query = query[position]
    positional = ops.convert_to_numpy(summed - embedded)[0, position]
    return {
        "position": position,
        "head": head + 1,
        "embedding": _numbers(embedded[0, position, :SHOWN]),
        "positional": _numbers(positional[:SHOWN]),
        "sum": _numbers(summed[0, position, :SHOWN]),
        "query": _numbers(query),
        "keys": _numbers(keys),
        "values": _numbers(values),
        "scores": _numbers(keys @ query / np.sqrt(len(query))),
        "weights": _numbers(weights[head, position]),
        "output": _numbers(weights[head, position] @ values),
    }


def chosen_head(to_others: np.ndarray) -> tuple[int, int]:
    """Chooses the head and the position that the tour shows.

    Args:
        to_others: float array (N, S, S). Attention of words to others, 0 elsewhere.
    Returns:
        Those of the largest weight of at most 0.8, not at position 0, whose vector of
        sines and cosines is only zeros and ones; without one, of the largest weight.
    """
    preferred = np.where(to_others <= MOST_READ, to_others, 0)
    preferred[:, 0] = 0
    weights = preferred if preferred.any() else to_others
    head, position, _ = np.unravel_index(weights.argmax(), weights.shape)
    return int(head), int(position)


def _candidates(model, arrays, name):
    logits = np.array(ops.convert_to_numpy(model(arrays))[0], "float64")  # (T, V)
    logits[:, list(model.forbidden_ids)] = -np.inf
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = exponentials / exponentials.sum(axis=-1, keepdims=True)
    best = np.argsort(-shares, axis=-1)[:, :CANDIDATES]
    return [
        [[_shown(name(id_), model, id_), round(float(row[id_]), 6)] for id_ in ids]
        for row, ids in zip(shares, best, strict=True)
    ]


def _shown(name, model, id_):
    """Returns a piece's name for the page."""
    if id_ == model.end_id:
        return "⟨end⟩"
    return name.replace("▁", " ").strip() or "⟨space⟩"


def _numbers(values):
    return np.round(ops.convert_to_numpy(values).astype("float64"), DIGITS).tolist()
