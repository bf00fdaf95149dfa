"""Stores the matrices of a `.tflite` file in 4 bits, with one scale per output."""

from collections import defaultdict

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.models.fake_quantization import LARGEST, SMALLEST_MATRIX

# Operators that accept 4 bits as second input, and the first versions that do.
VERSIONS = {
    schema.BuiltinOperator.FULLY_CONNECTED: 12,
    schema.BuiltinOperator.EMBEDDING_LOOKUP: 4,
}


def round_to_int4(file: schema.ModelT) -> None:
    """Rounds the matrices of a float32 `.tflite` file to 4 bits.

    The converter of TensorFlow 2.21 supports only 8 bits. LiteRT runs both, and in both
    cases quantises the inputs to 8 bits. A matrix is rounded if only FULLY_CONNECTED
    and EMBEDDING_LOOKUP read it; the largest value of each output becomes 7.

    Args:
        file: ModelT, the file's tables, modified in place.
    """
    for index, tensors in _matrices(file).items():
        buffer = file.buffers[index]
        numbers, scale = _rounded(buffer.data.view("<f4").reshape(tensors[0].shape))
        buffer.data = _pairs(numbers)
        for tensor in tensors:
            tensor.type = schema.TensorType.INT4
            tensor.quantization = schema.QuantizationParametersT(
                scale=scale, zeroPoint=np.zeros(len(scale), "int64")
            )
    _raise_versions(file)


def _matrices(file):
    """Returns the tensors of each buffer to round, by the buffer's index."""
    tensors, others = defaultdict(list), set()
    for graph in file.subgraphs:
        for operator in graph.operators:
            code = _code(file, operator).builtinCode
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
                    tensors[tensor.buffer].append(tensor)
                else:
                    others.add(tensor.buffer)
    return {
        index: readers
        for index, readers in tensors.items()
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


def _code(file, operator):
    return file.operatorCodes[operator.opcodeIndex]


def _raise_versions(file):
    """Sets the versions and options of the operators that read 4 bits."""
    for graph in file.subgraphs:
        for operator in graph.operators:
            code = _code(file, operator)
            if code.builtinCode not in VERSIONS:
                continue
            table = graph.tensors[operator.inputs[1]]
            if table.type != schema.TensorType.INT4:
                continue
            code.version = max(code.version, VERSIONS[code.builtinCode])
            if code.builtinCode == schema.BuiltinOperator.FULLY_CONNECTED:
                operator.builtinOptions.asymmetricQuantizeInputs = True
