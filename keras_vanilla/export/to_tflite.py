"""A translator as one `.tflite` file of builtin operators; the converter lives here."""

import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from keras_vanilla.export.search_graph import SearchGraph, in_float32
from keras_vanilla.export.to_saved_model import check_target

FORMS = ("ids",)
QUANTIZATIONS = ("int8", None)
USUAL_LENGTH = 128


def tflite(
    translator,
    path,
    quantize="int8",
    form="ids",
    max_source_length=None,
    max_length=None,
):
    """Writes one `.tflite` file with the whole greedy search inside.

    One signature of static shapes, which every runtime takes:

        translate_ids    source_ids int32 (1, S) -> ids int32 (1, L)

    with S = max_source_length, the ids followed by pads, and L = min(S + 50,
    max_length). The file holds builtin operators only. "int8" keeps the matrices in
    one byte a number, and quantises what they are multiplied with as it comes.

    Args:
        translator: Translator.
        path: path that ends with ".tflite"; written whole or not at all.
        quantize: "int8", or None for float32.
        form: "ids".
        max_source_length: int or None. Longest source in tokens, its end included;
            None means 128, or the model's `max_length` where that is less.
        max_length: int or None. The same of the output.
    Raises:
        FileExistsError: if `path` exists.
        FileNotFoundError: if its folder does not.
        ValueError: if `quantize` or `form` is unknown, `path` does not end with
            ".tflite", or a length is below 1 or above the model's.
        RuntimeError: if the graph needs other than builtin operators, or Keras does
            not run on TensorFlow.
    """
    path = Path(path)
    _check_choice("quantize", quantize, QUANTIZATIONS)
    _check_choice("form", form, FORMS)
    _check_path(path)
    model = in_float32(translator.model)
    source_length = _length("max_source_length", max_source_length, model)
    length = _length("max_length", max_length, model)
    with embedding_lookup(model), tempfile.TemporaryDirectory() as folder:
        _trace(model, source_length, length, folder)
        content = _convert(folder, quantize)
    _write(path, content)


@contextmanager
def embedding_lookup(model):
    """While open, the model's tables are read by TFLite's EMBEDDING_LOOKUP.

    A tied table that is read by GATHER is kept a second time when it is quantised.
    """
    tables = {id(e): e for e in (model.source_embedding, model.target_embedding)}
    for table in tables.values():
        table.lookup = _lookup
    try:
        yield
    finally:
        for table in tables.values():
            del table.lookup  # the class's own comes back


def _lookup(table, ids):
    ids = tf.convert_to_tensor(ids)
    rows = _embedding_matmul(tf.convert_to_tensor(table), tf.reshape(ids, [-1]))
    return tf.reshape(rows, [*ids.shape, table.shape[-1]])


@tf.function(experimental_implements="embedding_matmul", autograph=False)
def _embedding_matmul(value, ids):
    """A gather; its label is what the converter turns into EMBEDDING_LOOKUP."""
    return tf.gather(value, ids)


def _trace(model, source_length, max_length, folder):
    """Writes the search as a SavedModel, the converter's input that keeps names."""
    module = SearchGraph(model, max_length)
    source_ids = tf.TensorSpec([1, source_length], tf.int32, name="source_ids")

    @tf.function(input_signature=[source_ids], autograph=False)
    def translate_ids(source_ids):
        return {"ids": module(source_ids)}

    tf.saved_model.save(module, folder, signatures={"translate_ids": translate_ids})


def _convert(folder, quantize):
    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=["translate_ids"]
    )
    # Keras's own export adds SELECT_TF_OPS, which the plain runtime refuses.
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    # Else the last LayerNorm's gain makes a second copy of the tied table.
    converter._experimental_disable_fuse_mul_and_fc = True
    if quantize == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    try:
        return converter.convert()
    except Exception as error:  # the converter's own class is private
        raise RuntimeError(_reason(error)) from error


def _reason(error):
    """Which operators are not builtins, or else what the converter says first."""
    text = str(error)
    lists = re.findall(r"^(?:TF Select|Custom) ops: (.*)$", text, re.MULTILINE)
    names = sorted({name.strip() for names in lists for name in names.split(",")})
    if names:
        return (
            "The file may hold TFLite's builtin operators only. The model needs "
            f"others: {', '.join(names)}"
        )
    first_line = text.strip().split("\n")[0] or type(error).__name__
    return f"TensorFlow Lite cannot convert the model: {first_line}"


def _write(path, content):
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _check_path(path):
    if path.suffix != ".tflite":
        raise ValueError(f"A TFLite file's name ends with .tflite. Received: {path}")
    check_target(path)


def _check_choice(name, value, choices):
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {value!r}"
        )


def _length(name, length, model):
    if length is None:
        return min(USUAL_LENGTH, model.max_length)
    if not 1 <= length <= model.max_length:
        raise ValueError(
            f"`{name}` must be at least 1 and at most the model's `max_length`, "
            f"{model.max_length}. Received: {length}"
        )
    return length
