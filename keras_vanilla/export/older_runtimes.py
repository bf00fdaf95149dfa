"""The oldest runtime that runs a file, and int8 files that TensorFlow Lite 2.17 runs.

An int8 matrix has one scale per row. TensorFlow Lite can look up rows of such a matrix
since 2.18; version 2.17 supports only matrices with a single scale. With a scale of 1
the rows are integers, which are then multiplied by their scales. The results are the
same, and the file contains the matrix once.
"""

import numpy as np
from ai_edge_litert import schema_py_generated as schema

CODES = schema.BuiltinOperator
LOOKUP = CODES.EMBEDDING_LOOKUP
VERSION_FOR_ONE_SCALE = 3  # of LOOKUP
NEWER = {(CODES.FULLY_CONNECTED, 12): "2.17", (LOOKUP, 4): "2.18"}
# The highest version of each operator that has run on TensorFlow Lite 2.13, see
# tests/benchmarks/old_runtimes.py.
RAN_ON_2_13 = {
    **dict.fromkeys(
        "BATCH_MATMUL BITCAST BITWISE_XOR CONCATENATION COS CUMSUM DIV "
        "DYNAMIC_UPDATE_SLICE EQUAL EXP EXPAND_DIMS FLOOR_DIV FLOOR_MOD GREATER "
        "GREATER_EQUAL LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR MAXIMUM "
        "MEAN MINIMUM MUL NEG NOT_EQUAL PACK PAD PADV2 POW RANGE REDUCE_ALL REDUCE_ANY "
        "REDUCE_MAX REDUCE_MIN REDUCE_PROD RESHAPE RSQRT SCATTER_ND SELECT SELECT_V2 "
        "SHAPE SIN SOFTMAX SPLIT SQUARED_DIFFERENCE SUB SUM TILE TOPK_V2 TRANSPOSE "
        "UNPACK WHERE WHILE".split(),
        1,
    ),
    "FILL": 2,
    "SLICE": 2,
    "STRIDED_SLICE": 3,
    "BROADCAST_TO": 3,
    "CAST": 3,
    "EMBEDDING_LOOKUP": 3,
    "ADD": 4,
    "GATHER": 5,
    "FULLY_CONNECTED": 9,
}


def replace_lookups(file: schema.ModelT) -> None:
    """Changes an int8 file so that TensorFlow Lite 2.17 runs it with the same results.

    Args:
        file: ModelT, the file's tables from the converter, modified in place.
    """
    scale_buffers = {}  # buffer of a matrix -> buffer of its scales
    for graph in file.subgraphs:
        operators, graph.operators = graph.operators, []
        for operator in operators:
            code = file.operatorCodes[operator.opcodeIndex].builtinCode
            if code == LOOKUP and _has_scales(graph.tensors[operator.inputs[1]]):
                graph.operators += _scaled_lookup(file, graph, operator, scale_buffers)
            else:
                graph.operators.append(operator)
    for code in file.operatorCodes:
        if code.builtinCode == LOOKUP:
            code.version = min(code.version, VERSION_FOR_ONE_SCALE)


def oldest_runtime(file: schema.ModelT) -> str | None:
    """Returns the oldest TensorFlow Lite that runs a file, such as "2.17".

    Returns None if this is unknown for one of the file's operators.

    Args:
        file: ModelT, the file's tables.
    """
    names = {code: name for name, code in vars(CODES).items()}
    newer = {
        (code.builtinCode, code.version)
        for code in file.operatorCodes
        if code.version > RAN_ON_2_13.get(names[code.builtinCode], 0)
    }
    if newer <= NEWER.keys():
        return max(["2.13", *(NEWER[each] for each in newer)])
    return None


def _scaled_lookup(file, graph, lookup, scale_buffers):
    """Looks up the integer rows and their scales, and multiplies them."""
    (ids, table), (result,) = lookup.inputs, lookup.outputs
    matrix, output = graph.tensors[table], graph.tensors[result]
    scales = np.asarray(matrix.quantization.scale, np.float32)
    if matrix.buffer not in scale_buffers:
        scale_buffers[matrix.buffer] = len(file.buffers)
        data = np.frombuffer(scales.tobytes(), np.uint8)
        file.buffers.append(schema.BufferT(data=data))

    def tensor(shape, type_=schema.TensorType.FLOAT32, **settings):
        name = f"lookup_for_2_17_{len(graph.tensors)}"
        graph.tensors.append(
            schema.TensorT(name=name, shape=shape, type=type_, hasRank=True, **settings)
        )
        return len(graph.tensors) - 1

    def of_width_1(shape):
        return None if shape is None else np.array([*shape[:-1], 1], np.int32)

    one = schema.QuantizationParametersT(
        scale=np.ones(1, np.float32), zeroPoint=np.zeros(1, np.int64)
    )
    int8 = schema.TensorType.INT8
    numbers = tensor(matrix.shape, int8, buffer=matrix.buffer, quantization=one)
    column = np.array([len(scales), 1], np.int32)
    scale_column = tensor(column, buffer=scale_buffers[matrix.buffer])
    signature = output.shapeSignature
    rows = tensor(np.copy(output.shape), shapeSignature=signature)
    row_scales = tensor(of_width_1(output.shape), shapeSignature=of_width_1(signature))
    return [
        schema.OperatorT(lookup.opcodeIndex, _ints(ids, numbers), _ints(rows)),
        schema.OperatorT(
            lookup.opcodeIndex, _ints(ids, scale_column), _ints(row_scales)
        ),
        schema.OperatorT(
            _index_of_mul(file),
            _ints(rows, row_scales),
            _ints(result),
            schema.BuiltinOptions.MulOptions,
            schema.MulOptionsT(),
        ),
    ]


def _index_of_mul(file):
    codes = [each.builtinCode for each in file.operatorCodes]
    if CODES.MUL not in codes:
        file.operatorCodes.append(
            schema.OperatorCodeT(
                deprecatedBuiltinCode=CODES.MUL, builtinCode=CODES.MUL, version=1
            )
        )
        return len(codes)
    return codes.index(CODES.MUL)


def _has_scales(tensor):
    """Returns True for an int8 matrix with one scale per row."""
    quantization = tensor.quantization
    scale = None if quantization is None else quantization.scale
    return (
        tensor.type == schema.TensorType.INT8 and scale is not None and len(scale) > 1
    )


def _ints(*indices):
    return np.array(indices, np.int32)
