"""TensorFlow graphs to SavedModels, and forms to `.tflite` files through them."""

import logging
import re
import tempfile
from typing import Any

import keras
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._checks import first_line
from keras_vanilla._operators import use_operators
from keras_vanilla._types import PathLike
from keras_vanilla.export.conversion import not_builtin, round_matrices
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.export.phone_operators import PhoneOperators
from keras_vanilla.models.transformer import Transformer


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


class _FormModule(tf.Module):
    """A form with its weights, which TensorFlow must find to save them."""

    def __init__(self, form, model):
        super().__init__()
        self._form, self.weights = form, [weight.value for weight in model.weights]

    def signatures(self):
        return {
            name: tf.function(function, autograph=False).get_concrete_function(
                **{n: tf.TensorSpec(x.shape, x.dtype, n) for n, x in inputs.items()}
            )
            for name, (function, inputs) in self._form.signatures().items()
        }


def convert_form(form: Any, model: Transformer, quantize: str | None) -> schema.ModelT:
    """Converts a form on TensorFlow, see `conversion.convert`."""
    operators, module = PhoneOperators(model), _FormModule(form, model)
    with use_operators(operators), tempfile.TemporaryDirectory() as folder:
        # Only a SavedModel keeps the names; the converter's other inputs lose them.
        file = unpacked(_convert(folder, save_graph(module, folder), quantize))
    if quantize == "int4":
        round_matrices(file, quantize)
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
        return not_builtin(names)
    return f"TensorFlow Lite cannot convert the model: {first_line(error)}"
