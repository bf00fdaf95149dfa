"""TensorFlow modules to SavedModel folders and to the bytes of `.tflite` files."""

import logging
import re
import tempfile

import keras
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._checks import first_line
from keras_vanilla._operators import use_operators
from keras_vanilla._types import PathLike
from keras_vanilla.export.int4_weights import round_to_int4
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.export.phone_operators import PhoneOperators
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.translation import Translator


def check_translator(translator: Translator) -> None:
    """Refuses what is not a Translator, such as its path.

    Raises:
        TypeError: if it is not.
    """
    if not isinstance(translator, Translator):
        raise TypeError(
            "`translator` must be a Translator, see `Translator.load`. Received: "
            f"{translator!r:.60}"
        )


def require_tensorflow() -> None:
    """Refuses to export if Keras does not run on TensorFlow.

    Raises:
        RuntimeError: if it does not.
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "Export needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before "
            f"Keras is imported. Received: backend {backend!r}"
        )


def convert(
    module: tf.Module, model: Transformer, quantize: str | None = None
) -> schema.ModelT:
    """Converts a module to the tables of a `.tflite` file with builtin operators only.

    Args:
        module: tf.Module with `signatures()`, functions by name.
        model: Transformer that the module runs.
        quantize: "int8", "int4", or None for float32.
    Raises:
        RuntimeError: if the graph needs operators that are not builtin, or TensorFlow
            Lite cannot convert it for another reason.
    """
    operators = PhoneOperators(model)
    with use_operators(operators), tempfile.TemporaryDirectory() as folder:
        # Only a SavedModel keeps the names; the converter's other inputs lose them.
        file = unpacked(_convert(folder, save_graph(module, folder), quantize))
    if quantize == "int4":
        round_to_int4(file)
    return file


def save_graph(module: tf.Module, folder: PathLike) -> list[str]:
    """Writes a SavedModel, and returns the names of its functions.

    TensorFlow's message about the folder is hidden, because the folder is temporary.

    Args:
        module: tf.Module with `signatures()`, functions by name.
        folder: path of a folder that does not exist yet, or is empty.
    """
    signatures = module.signatures()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        tf.saved_model.save(module, str(folder), signatures=signatures)
    finally:
        logger.setLevel(level)
    return list(signatures)


def _convert(folder, signatures, quantize):
    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=signatures
    )
    # Keras's own export adds SELECT_TF_OPS, which the plain runtime refuses.
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    # Otherwise the gain of the last LayerNorm causes a second copy of the tied table.
    converter._experimental_disable_fuse_mul_and_fc = True
    # The file has a description; adding TensorFlow's would rewrite the whole file.
    converter.exclude_conversion_metadata = True
    if quantize == "int8":  # TensorFlow rounds each row w by its scale max|w| / 127
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    try:
        return converter.convert()
    except Exception as error:  # the converter's own class is private
        raise RuntimeError(_reason(error)) from error


def _reason(error):
    """Returns the operators that are not builtins, or the converter's first line."""
    text = str(error)
    lists = re.findall(r"^(?:TF Select|Custom) ops: (.*)$", text, re.MULTILINE)
    names = sorted({name.strip() for names in lists for name in names.split(",")})
    if names:
        return (
            "The file may hold TFLite's builtin operators only. The model needs "
            f"others: {', '.join(names)}"
        )
    return f"TensorFlow Lite cannot convert the model: {first_line(error)}"
