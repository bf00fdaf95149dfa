"""Writes the page as a folder for any static file host, with its guided tour."""

import dataclasses
import json
import re
import shutil
from bisect import bisect_right
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
# The tour: its sizes, the word that it follows, and what is a word.
SHOWN = 8  # numbers per vector
MEMORY_SHOWN = 32
CANDIDATES = 5  # next pieces
NEAREST = 5  # vectors of other pieces
MASKED = 5  # rows of the mask
DIGITS = 4
MOST_READ = 0.8  # of a weight, so that a head visibly mixes values
FOLLOWED = "it"  # of the sentence about the animal and the street
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]+")
# A word that one piece can be: "animal" in "L'animal", but not "didn" in "didn't".
WHOLE = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}(?![^\W\d_]|['’])")


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
        others = [text for text in examples if other_word(examples[0], text)]
        content = tour(translator, examples[0], *others[:1])
        file = folder / "inside" / "tour.json"
        file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


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
    for path in (litert / "core" / "wasm").iterdir():
        is_code = path.suffix in (".js", ".wasm")
        if is_code and not any(name in path.name for name in OTHER_VARIANTS):
            copy = folder / path.relative_to(litert)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def tour(translator: Translator, text: str, other: str | None = None) -> dict[str, Any]:
    """Returns the numbers that the tour of a text shows, for JSON.

    Args:
        translator: Translator.
        text: str.
        other: str or None. A sentence that differs from the text in one word, which may
            decide another one in the translation.
    Returns:
        Dict of the text and its translation; `pieces` (S names) and their `ids`, and
        `words`, the positions of the pieces of each; `written` (T names) and the
        `beginnings` before each; the sizes of the model. The tour follows the piece at
        `position`: the first 8 numbers of its `embedding`, of `positional`, of their
        `sum`, and of what the first layer makes of it, `attended` and `layer_output`;
        the `nearest` names with their cosines; for the `head` (from 1) of the encoder's
        first layer, `query` (H), `keys` and `values` (S, H), `scores` and `weights` (S)
        and `output` (H); `memory` (S, 32). For each step `cross` (S), the weights of
        the decoder layer `cross_layer` (from 1), which aligns best, averaged over its
        heads, and `candidates`, the most probable names with their probabilities; for
        the first 5 steps `self`, the weights of what is written. The followed step is
        `step`. If the translations part there, `contrast` has the names that they
        `write`, and the probability of both for each of three sentences: the text, the
        other, and the text without the `words` in which these two differ.
    Raises:
        ValueError: if a text has more tokens than the model takes.
    """
    translator = translator.in_float32()
    model, tokenizer = translator.model, translator.tokenizer
    source, target = _ids(translator, text)
    arrays = {
        "source_ids": np.array([source], "int32"),
        "target_ids": np.array([[model.start_id, *target[:-1]]], "int32"),
    }
    weights = model.attention_weights(arrays)
    layer = alignment_layer(model.num_decoder_layers)
    cross = weights[f"decoder/{layer}/cross"][0].mean(axis=0)  # (T, S)
    read = weights[f"decoder/{layer}/self"][0].mean(axis=0)  # (T, T)
    source_name = _shown(model, source_names(tokenizer))
    target_name = _shown(model, target_names(tokenizer))
    pieces = [source_name(id_) for id_ in source]
    words, is_word = _words(source_names(tokenizer), source, model.end_id)
    contrast = other and _contrast(translator, text, other, target, target_name)
    step = contrast["step"] if contrast else _clearest(translator, target, cross)
    position = _followed(pieces, is_word, cross[step])
    return {
        "text": text,
        "translation": tokenizer.decode([target])[0],
        "pieces": pieces,
        "ids": source,
        "words": words,
        "beginnings": tokenizer.decode([target[:i] for i in range(len(target))]),
        "written": [target_name(id_) for id_ in target],
        "num_encoder_layers": model.num_encoder_layers,
        "num_decoder_layers": model.num_decoder_layers,
        "num_heads": model.num_heads,
        "d_model": model.d_model,
        "d_ff": model.d_ff,
        "vocabulary_size": model.target_vocabulary_size,
        "position": position,
        **_head(
            model, arrays["source_ids"], weights["encoder/0"][0], position, is_word
        ),
        "nearest": _nearest(model, source[position], source_name),
        "memory": _numbers(model.encode(arrays["source_ids"])[0][0, :, :MEMORY_SHOWN]),
        "self": _numbers(read[:MASKED, :MASKED]),
        "step": step,
        "cross": _numbers(cross),
        "cross_layer": layer + 1,
        "candidates": [
            [
                [target_name(id_), round(float(row[id_]), 6)]
                for id_ in np.argsort(-row)[:CANDIDATES]
            ]
            for row in _probabilities(model, arrays)
        ],
        "contrast": contrast,
    }


def _ids(translator, text):
    """Returns the ids of a text and of its translation, up to the end."""
    (source,) = translator.encode([text])
    target = translator.search([source])[0].tolist()
    end = translator.model.end_id
    return source, target[: target.index(end) + 1] if end in target else target


def _words(name, ids, end_id):
    """Returns the positions of the pieces of each word, and which pieces are one."""
    text, places = "", []
    for id_ in ids:
        piece = "" if id_ == end_id else name(id_).replace("▁", " ")
        begin = len(text) + len(piece) - len(piece.lstrip())
        places.append((begin, begin + len(piece.strip())))
        text += piece
    ends = [match.end() for match in WORD.finditer(text)]
    if " " not in text.strip():  # a language that has no spaces between words
        ends = [end for _, end in places]
    words = {}
    for position, (begin, _) in enumerate(places):
        words.setdefault(bisect_right(ends, begin), []).append(position)
    whole = {match.span() for match in WHOLE.finditer(text)}
    return list(words.values()), np.array([place in whole for place in places])


def other_word(text: str, other: str) -> tuple[str, str] | None:
    """Returns the words in which two texts differ, if it is one of each."""
    both = WORD.findall(text), WORD.findall(other)
    different = [pair for pair in zip(*both, strict=False) if pair[0] != pair[1]]
    is_one = len(both[0]) == len(both[1]) and len(different) == 1
    return different[0] if is_one else None


def _contrast(translator, text, other, target, name):
    """Returns where the translations of two texts part, if each writes a word there."""
    words, model = other_word(text, other), translator.model
    _, second = _ids(translator, other)
    pairs = enumerate(zip(target, second, strict=False))
    step = next((i for i, (one, two) in pairs if one != two), None)
    if words is None or step is None:
        return None
    written = target[step], second[step]
    raw_name = target_names(translator.tokenizer)
    if not all(
        _words(raw_name, ids, model.end_id)[1][step] for ids in (target, second)
    ):
        return None
    pairs = zip(WORD.finditer(text), WORD.findall(other), strict=True)
    span = next(match.span() for match, word in pairs if match[0] != word)
    without = f"{text[: span[0]].rstrip()}{text[span[1] :]}".strip()
    before = np.array([[model.start_id, *target[:step]]], "int32")
    rows = []
    for sentence in (text, other, without):
        source = np.array(translator.encode([sentence]), "int32")
        arrays = {"source_ids": source, "target_ids": before}
        shares = _probabilities(model, arrays)[-1]
        rows.append([sentence, *(round(float(shares[id_]), 6) for id_ in written)])
    return {
        "step": step,
        "words": list(words),
        "write": [name(id_) for id_ in written],
        "probabilities": rows,
    }


def _clearest(translator, target, cross):
    """The step whose attention is clearest, of those that write a word, if any does."""
    name, end_id = target_names(translator.tokenizer), translator.model.end_id
    is_word = _words(name, target, end_id)[1]
    clearness = cross[:, :-1].max(axis=1)  # the source's end is no word
    return int(np.argmax(np.where(is_word, clearness, clearness - 1)))


def _followed(pieces, is_word, weights):
    """The position of "it", or else of the word that the followed step reads most."""
    if FOLLOWED in pieces:
        return pieces.index(FOLLOWED)
    return int(np.argmax(np.where(is_word, weights, weights - 1)[:-1]))


def _head(model, source_ids, weights, position, is_word):
    """Computes one position and head of the first layer, from the ids to its output."""
    head = chosen_head(weights[:, position], position, is_word)
    layer = model.encoder.layers[0]
    embedded = model.encoder.embedding(source_ids)
    summed = model.encoder.positions(embedded)
    inputs = layer.self_attention_residual.before(summed)
    attended = layer.self_attention(inputs, inputs)
    attended = layer.self_attention_residual.after(summed, attended)
    projected = layer.self_attention.project(inputs, inputs, inputs)
    query, keys, values = (ops.convert_to_numpy(each)[0, head] for each in projected)
    query = query[position]
    vectors = {
        "embedding": embedded,
        "positional": summed - embedded,
        "sum": summed,
        "attended": attended,
        "layer_output": layer(summed),
    }
    return {
        "head": head + 1,
        **{name: _numbers(of[0, position, :SHOWN]) for name, of in vectors.items()},
        "query": _numbers(query),
        "keys": _numbers(keys),
        "values": _numbers(values),
        "scores": _numbers(keys @ query / np.sqrt(len(query))),
        "weights": _numbers(weights[head, position]),
        "output": _numbers(weights[head, position] @ values),
    }


def chosen_head(weights: np.ndarray, position: int, is_word: np.ndarray) -> int:
    """Chooses the head that the tour shows.

    Args:
        weights: float array (N, S). Attention of the followed piece.
        position: int. Its position.
        is_word: bool array (S,). True for pieces that are whole words.
    Returns:
        The head with the largest weight of at most 0.8 for another word; without one,
        with the largest weight for another piece.
    """
    others = weights * (np.arange(weights.shape[1]) != position)
    preferred = np.where(is_word & (others <= MOST_READ), others, 0)
    return int((preferred if preferred.any() else others).max(axis=1).argmax())


def _nearest(model, id_, name):
    """The pieces whose vectors have the smallest angles to that of an id."""
    table = ops.convert_to_numpy(model.encoder.embedding.embeddings).astype("float64")
    cosines = table @ table[id_]
    cosines /= np.linalg.norm(table, axis=1) * np.linalg.norm(table[id_]) + 1e-12
    cosines[[id_, *model.forbidden_ids, model.end_id]] = -np.inf
    best = np.argsort(-cosines)[:NEAREST]
    return [[name(other), round(float(cosines[other]), DIGITS)] for other in best]


def _probabilities(model, arrays):
    """The probabilities (T, V) of the next ids."""
    logits = np.array(ops.convert_to_numpy(model(arrays))[0], "float64")
    logits[:, list(model.forbidden_ids)] = -np.inf
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _shown(model, name):
    """A function that maps an id to its piece's name for the page."""

    def shown(id_):
        if id_ == model.end_id:
            return "⟨end⟩"
        return name(id_).replace("▁", " ").strip() or "⟨space⟩"

    return shown


def _numbers(values):
    return np.round(ops.convert_to_numpy(values).astype("float64"), DIGITS).tolist()
