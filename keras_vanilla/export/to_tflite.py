"""A translator as one `.tflite` file of builtin operators; the converter lives here."""

import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from keras_vanilla.decoding.beam import check_beam_search
from keras_vanilla.export.forms import FORMS, Limits
from keras_vanilla.export.search_graph import in_float32
from keras_vanilla.export.to_saved_model import check_target

QUANTIZATIONS = ("int8", None)
USUAL_LENGTH = 128


def tflite(
    translator,
    path,
    quantize="int8",
    beam_size=1,
    max_bytes=512,
    max_length=None,
    form="text",
    max_source_length=None,
    length_penalty=0.6,
):
    """Writes one `.tflite` file with the whole translation inside.

    Static shapes, which every runtime takes, and builtin operators only. By form, one
    signature or two:

        text     translate       text uint8 (max_bytes,) -> text uint8 (M,),
                                 ids int32 (L,), score float32 ()
        ids      translate_ids   source_ids int32 (1, S) -> ids int32 (1, L)
        steps    encode          source_ids int32 (1, S) -> the cache
                 decode_step     ids int32 (1,), index int32 (), the cache ->
                                 logits float32 (1, V), what changed of the cache

    with S = max_source_length and L = min(S + 50, max_length); see `forms`. A text is
    UTF-8 that ends with its last byte but 0. "int8" keeps the matrices in one byte a
    number, and quantises what they are multiplied with as it comes.

    Args:
        translator: Translator.
        path: path that ends with ".tflite"; written whole or not at all.
        quantize: "int8", or None for float32.
        beam_size: int. 1 is greedy search.
        max_bytes: int. Longest text, in bytes.
        max_length: int or None. Longest output in tokens, its end included; None means
            128, or the model's `max_length` where that is less.
        form: "text", "ids" or "steps".
        max_source_length: int or None. The same of the source.
        length_penalty: float. Of beam search.
    Raises:
        FileExistsError: if `path` exists.
        FileNotFoundError: if its folder does not.
        ValueError: if `quantize` or `form` is unknown, `path` does not end with
            ".tflite", a length is below 1 or above the model's, the search's arguments
            are out of their range, or a tokenizer is no unigram model.
        RuntimeError: if the graph needs other than builtin operators, or Keras does
            not run on TensorFlow.
    """
    path = Path(path)
    _check_choice("quantize", quantize, QUANTIZATIONS)
    _check_choice("form", form, tuple(FORMS))
    check_beam_search(beam_size, 1, length_penalty)
    _check_path(path)
    model = in_float32(translator.model)
    limits = _limits(model, max_bytes, max_source_length, max_length)
    search = {"beam_size": beam_size, "length_penalty": length_penalty}
    module = FORMS[form](
        translator.tokenizer,
        model,
        limits,
        **({} if form == "steps" else search),
    )
    with embedding_lookup(model):
        content = _converted(module, quantize)
    _write(path, content)


def _converted(module, quantize):
    """The file's bytes; a SavedModel is the converter's input that keeps names."""
    with tempfile.TemporaryDirectory() as folder:
        signatures = module.signatures()
        tf.saved_model.save(module, folder, signatures=signatures)
        return _convert(folder, list(signatures), quantize)


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
    return tf.reshape(rows, tf.concat([tf.shape(ids), [table.shape[-1]]], axis=0))


@tf.function(experimental_implements="embedding_matmul", autograph=False)
def _embedding_matmul(value, ids):
    """A gather; its label is what the converter turns into EMBEDDING_LOOKUP."""
    return tf.gather(value, ids)


def _convert(folder, signatures, quantize):
    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=signatures
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


def _limits(model, max_bytes, max_source_length, max_length):
    if max_bytes < 1:
        raise ValueError(f"`max_bytes` must be at least 1. Received: {max_bytes}")
    return Limits(
        max_bytes,
        _length("max_source_length", max_source_length, model),
        _length("max_length", max_length, model),
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
