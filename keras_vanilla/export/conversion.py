"""TensorFlow modules to SavedModels, and to `.tflite` files with 32, 8 or 4 bits."""

import logging
import math
import re
import tempfile
from collections import Counter, defaultdict

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._checks import check_choice, first_line
from keras_vanilla._operators import use_operators
from keras_vanilla._types import PathLike
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.export.phone_operators import PhoneOperators, fused_attentions
from keras_vanilla.models.fake_quantization import LARGEST, SMALLEST_MATRIX
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import MarianTokenizer
from keras_vanilla.translation import Translator

# Operators that accept 4 bits as second input, and the first versions that do.
INT4_VERSIONS = {
    schema.BuiltinOperator.FULLY_CONNECTED: 12,
    schema.BuiltinOperator.EMBEDDING_LOOKUP: 4,
}


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


def in_target_language(translator: Translator, tag: str | None) -> Translator:
    """Returns a translator that adds one language code to every source.

    Args:
        translator: Translator. Returned unchanged if its texts have no language codes.
        tag: str or None. The language as a BCP-47 tag, such as "fra" for ">>fra<<" or
            "zho-Hans" for ">>zho_Hans<<"; None expects the codes in the texts.
    Raises:
        ValueError: if the vocabulary has language codes, but not this one.
    """
    tokenizer = translator.tokenizer
    if tag is None or not isinstance(tokenizer, MarianTokenizer):
        return translator
    tags = {language.replace("_", "-"): language for language in tokenizer.languages}
    if not tags:
        return translator
    language = tags[check_choice("target_language", tag, tuple(tags))]
    return translator.replace(tokenizer=tokenizer.with_target_language(language))


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


def round_to_int4(file: schema.ModelT) -> None:
    """Rounds the matrices of a float32 `.tflite` file to 4 bits.

    The converter of TensorFlow 2.21 supports only 8 bits. LiteRT runs both, and in both
    cases quantises the inputs to 8 bits. A matrix is rounded if only FULLY_CONNECTED
    and EMBEDDING_LOOKUP read it; the largest value of each output becomes 7.

    Args:
        file: ModelT, the file's tables, modified in place.
    """
    for index, reads in _matrices(file).items():
        buffer, shape = file.buffers[index], reads[0][0].shape
        numbers, scale = _rounded(buffer.data.view("<f4").reshape(shape))
        buffer.data = _pairs(numbers)
        for tensor, operator in reads:
            tensor.type = schema.TensorType.INT4
            tensor.quantization = schema.QuantizationParametersT(
                scale=scale, zeroPoint=np.zeros(len(scale), "int64")
            )
            code = file.operatorCodes[operator.opcodeIndex]
            code.version = max(code.version, INT4_VERSIONS[code.builtinCode])
            if code.builtinCode == schema.BuiltinOperator.FULLY_CONNECTED:
                operator.builtinOptions.asymmetricQuantizeInputs = True


def _matrices(file):
    """Returns, for each buffer to round, its tensors and the operators that read it."""
    reads, others = defaultdict(list), set()
    for graph in file.subgraphs:
        for operator in graph.operators:
            code = file.operatorCodes[operator.opcodeIndex].builtinCode
            for position, tensor_index in enumerate(operator.inputs):
                if tensor_index < 0:  # an optional input
                    continue
                tensor = graph.tensors[tensor_index]
                is_large = (
                    tensor.type == schema.TensorType.FLOAT32
                    and len(tensor.shape) == 2
                    and np.prod(tensor.shape) >= SMALLEST_MATRIX
                )
                if code in INT4_VERSIONS and position == 1 and is_large:
                    reads[tensor.buffer].append((tensor, operator))
                else:
                    others.add(tensor.buffer)
    return {
        index: pairs
        for index, pairs in reads.items()
        if index not in others and file.buffers[index].data is not None
    }


def _rounded(matrix):
    """Returns integers (F, D) from -7 to 7, and the scale of each row."""
    scale = np.abs(matrix).max(axis=1) / np.float32(LARGEST["int4"])
    scale[scale == 0] = 1
    return np.rint(matrix / scale[:, None]).astype("int8"), scale


def _pairs(numbers):
    """Packs two numbers per byte, the first one in the lower half."""
    halves = numbers.reshape(-1).view("uint8") & 15
    halves = np.append(halves, np.zeros(halves.size % 2, "uint8"))
    return halves[::2] | halves[1::2] << 4


def structure_faults(file: schema.ModelT, model: Transformer) -> list[str]:
    """Finds matrices that a file stores more often than the model has them.

    Args:
        file: ModelT, the tables of a `.tflite` file.
        model: Transformer that was exported.
    Returns:
        List of str, one sentence per fault.
    """
    tensors = {t.buffer: t for graph in file.subgraphs for t in graph.tensors}
    in_file = Counter(
        math.prod(map(int, tensor.shape))
        for index, tensor in tensors.items()
        if file.buffers[index].data is not None
        and tensor.shape is not None
        and len(tensor.shape) == 2
    )
    in_model = Counter(math.prod(w.shape) for w in model.weights if len(w.shape) > 1)
    for attention in fused_attentions(model):
        size = math.prod(attention.query_dense.kernel.shape)
        in_model[size] -= 3
        in_model[3 * size] += 1
    return [
        f"Matrices of {size:,} numbers are in the file {in_file[size]} times, and in "
        f"the model {count} times."
        for size, count in sorted(in_model.items())
        if size >= SMALLEST_MATRIX and in_file[size] > count
    ]
