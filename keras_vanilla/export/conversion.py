"""A TensorFlow module to the bytes of a `.tflite` file; the converter lives here."""

import re
import tempfile
from contextlib import contextmanager

import tensorflow as tf

from keras_vanilla._checks import first_line
from keras_vanilla.export.graph_folder import save_graph


def convert(module, model, quantize=None):
    """The bytes of a `.tflite` file of builtin operators.

    Args:
        module: tf.Module with `signatures()`, functions by name.
        model: Transformer that the module runs.
        quantize: "int8", or None for float32.
    Raises:
        RuntimeError: if the graph needs other than builtin operators, or TensorFlow
            Lite cannot convert it for another reason.
    """
    with embedding_lookup(model), tempfile.TemporaryDirectory() as folder:
        # A SavedModel is the converter's input that keeps names.
        return _convert(folder, save_graph(module, folder), quantize)


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
    return f"TensorFlow Lite cannot convert the model: {first_line(error)}"
