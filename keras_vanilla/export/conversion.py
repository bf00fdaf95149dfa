"""Forms to the tables of `.tflite` files, whose weights are checked and rounded."""

import importlib.util
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._checks import check_choice, extra_missing
from keras_vanilla.export.fused_projections import fused_attentions
from keras_vanilla.models.fake_quantization import LARGEST, SMALLEST_MATRIX
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import MarianTokenizer
from keras_vanilla.translation import Translator

# Operators that accept rounded matrices as second input, and the first versions that
# accept 4 bits; TensorFlow writes these for 8 bits as well.
VERSIONS = {
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


def check_backend() -> None:
    """Checks that Keras runs on a backend from which `.tflite` files are converted.

    Raises:
        ImportError: if it runs on JAX and litert-converter is not installed.
        RuntimeError: if it runs on another backend.
    """
    backend = keras.backend.backend()
    if backend not in ("tensorflow", "jax"):
        raise RuntimeError(
            "Export needs Keras on TensorFlow or JAX: set KERAS_BACKEND to tensorflow "
            f"or jax before Keras is imported. Received: backend {backend!r}"
        )
    if backend == "jax" and importlib.util.find_spec("litert_converter") is None:
        raise extra_missing("Exports on JAX", "litert-converter", "export")


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


def convert(form: Any, model: Transformer, quantize: str | None) -> schema.ModelT:
    """Converts a form to the tables of a `.tflite` file with builtin operators only.

    Args:
        form: one of `signatures.FORMS`.
        model: Transformer that the form runs.
        quantize: "int8", "int4", or None for float32.
    Raises:
        RuntimeError: if the form needs operators that are not builtin, or cannot be
            converted for another reason.
    """
    if keras.backend.backend() == "jax":
        from keras_vanilla.export.stablehlo import convert_form
    else:
        from keras_vanilla.export.tensorflow_graphs import convert_form
    return convert_form(form, model, quantize)


def not_builtin(names: Sequence[str]) -> str:
    """The sentence about operators that a file may not hold."""
    return (
        "The file may hold TFLite's builtin operators only. The model needs others: "
        f"{', '.join(names)}"
    )


def round_matrices(file: schema.ModelT, quantize: str) -> None:
    """Rounds the matrices of a float32 `.tflite` file to 8 or 4 bits.

    The converter of TensorFlow 2.21 supports only 8 bits, that of StableHLO neither.
    LiteRT runs both, and in both cases quantises the inputs to 8 bits. A matrix is
    rounded if only FULLY_CONNECTED and EMBEDDING_LOOKUP read it; the largest value of
    each output becomes 127 or 7.

    Args:
        file: ModelT, the file's tables, modified in place.
        quantize: "int8" or "int4".
    """
    for index, reads in _matrices(file).items():
        buffer, shape = file.buffers[index], reads[0][0].shape
        matrix = buffer.data.view("<f4").reshape(shape)
        is_int4 = quantize == "int4"
        if not is_int4:
            matrix = matrix.astype("float64")  # as in TensorFlow's converter
        numbers, scale = _rounded(matrix, LARGEST[quantize])
        buffer.data = _pairs(numbers) if is_int4 else numbers.view("uint8").reshape(-1)
        for tensor, operator in reads:
            tensor.type = getattr(schema.TensorType, quantize.upper())
            tensor.quantization = schema.QuantizationParametersT(
                scale=scale.astype("float32"), zeroPoint=np.zeros(len(scale), "int64")
            )
            code = file.operatorCodes[operator.opcodeIndex]
            code.version = max(code.version, VERSIONS[code.builtinCode])
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
                if code in VERSIONS and position == 1 and is_large:
                    reads[tensor.buffer].append((tensor, operator))
                else:
                    others.add(tensor.buffer)
    return {
        index: pairs
        for index, pairs in reads.items()
        if index not in others and file.buffers[index].data is not None
    }


def _rounded(matrix, largest):
    """Returns integers (F, D) from -largest to largest, and the scale of each row."""
    scale = np.abs(matrix).max(axis=1) / np.float32(largest)
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
