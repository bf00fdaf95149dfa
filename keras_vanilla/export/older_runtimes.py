"""The oldest runtime that runs a file, and int8 files for older ones.

An int8 matrix has one scale per row. TensorFlow Lite 2.18 is the first that looks up
rows of such a matrix, 2.17 the first that multiplies by it (2.14 does so with a wrong
result). All older ones do both for a matrix with one scale. With the scale 1 they give
the products of whole numbers, which are then multiplied by the scales of the rows. The
results are the same, and the matrix is in the file once.
"""

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.export.metadata.flatbuffer import packed

RUNTIMES = ("2.13", "2.17")  # of TensorFlow Lite
CODES = schema.BuiltinOperator
LOOKUP, PRODUCT = CODES.EMBEDDING_LOOKUP, CODES.FULLY_CONNECTED
ONE_SCALE = {LOOKUP: 3, PRODUCT: 9}  # the versions for a matrix with one scale
NEWER = {(PRODUCT, 12): "2.17", (LOOKUP, 4): "2.18"}
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


def for_older_runtimes(content: bytes, oldest: str = "2.17") -> bytes:
    """An int8 file with the same results, for runtimes from one on.

    Args:
        content: bytes of a `.tflite` file that the converter made.
        oldest: "2.17", or "2.13", for which each product with an int8 matrix is
            followed by one with its scales.
    """
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    replaced = {LOOKUP: _lookup, PRODUCT: _product}
    if oldest != "2.13":
        del replaced[PRODUCT]
    editor = _Editor(model)
    for graph in model.subgraphs:
        editor.graph, operators = graph, graph.operators
        graph.operators = []
        for operator in operators:
            code = model.operatorCodes[operator.opcodeIndex].builtinCode
            if code in replaced and _has_scales(graph.tensors[operator.inputs[1]]):
                replaced[code](editor, operator)
            else:
                graph.operators.append(operator)
    for code in model.operatorCodes:
        if code.builtinCode in replaced:
            code.version = min(code.version, ONE_SCALE[code.builtinCode])
    return packed(model)


def oldest_runtime(content: bytes) -> str | None:
    """The oldest TensorFlow Lite that runs a file, such as "2.17".

    None if the file has operators of which that is not known.

    Args:
        content: bytes of a `.tflite` file.
    """
    model = schema.Model.GetRootAs(content, 0)
    codes = map(model.OperatorCodes, range(model.OperatorCodesLength()))
    names = {number: name for name, number in vars(CODES).items()}
    newer = {
        (code.BuiltinCode(), code.Version())
        for code in codes
        if code.Version() > RAN_ON_2_13.get(names[code.BuiltinCode()], 0)
    }
    if newer <= NEWER.keys():
        return max(["2.13", *(NEWER[each] for each in newer)])
    return None


class _Editor:
    """Appends operators and tensors to one graph of a model.

    Args:
        model: ModelT of TensorFlow Lite's schema.
    Attributes:
        graph: SubGraphT that is edited.
    """

    def __init__(self, model):
        self.model, self.graph = model, None
        self._scales = {}  # the buffer with the scales of a matrix, by the matrix's

    def operator(self, code, inputs, output, options):
        """Appends an operator of version 1, with options of its kind."""
        kind = type(options).__name__.removesuffix("T")
        self.graph.operators.append(
            schema.OperatorT(
                opcodeIndex=self._code_index(code),
                inputs=_ints(*inputs),
                outputs=_ints(output),
                builtinOptionsType=getattr(schema.BuiltinOptions, kind),
                builtinOptions=options,
            )
        )

    def result_like(self, index, width=None):
        """The index of a new float32 tensor, of another's shape or of another width."""
        like = self.graph.tensors[index]
        shape, signature = np.copy(like.shape), like.shapeSignature
        signature = None if signature is None else np.copy(signature)
        if width is not None:
            shape[-1] = width
            if signature is not None:
                signature[-1] = width
        return self._tensor(shape, shape_signature=signature)

    def unscaled(self, index):
        """The index of a matrix's numbers as a tensor with the one scale 1."""
        matrix = self.graph.tensors[index]
        one = schema.QuantizationParametersT(
            scale=np.ones(1, np.float32), zeroPoint=np.zeros(1, np.int64)
        )
        return self._tensor(
            matrix.shape, schema.TensorType.INT8, matrix.buffer, quantization=one
        )

    def scales(self, index, *width):
        """The index of a matrix's scales as a tensor (rows, *width)."""
        matrix = self.graph.tensors[index]
        scales = np.asarray(matrix.quantization.scale, np.float32)
        if matrix.buffer not in self._scales:
            self._scales[matrix.buffer] = len(self.model.buffers)
            octets = np.frombuffer(scales.tobytes(), np.uint8)
            self.model.buffers.append(schema.BufferT(data=octets))
        shape = np.array([len(scales), *width], np.int32)
        return self._tensor(shape, buffer=self._scales[matrix.buffer])

    def _tensor(
        self,
        shape,
        number_type=schema.TensorType.FLOAT32,
        buffer=0,
        shape_signature=None,
        quantization=None,
    ):
        self.graph.tensors.append(
            schema.TensorT(
                name=f"older_runtimes_{len(self.graph.tensors)}",
                shape=shape,
                shapeSignature=shape_signature,
                type=number_type,
                buffer=buffer,
                quantization=quantization,
                hasRank=True,
            )
        )
        return len(self.graph.tensors) - 1

    def _code_index(self, code):
        codes = [each.builtinCode for each in self.model.operatorCodes]
        if code not in codes:
            self.model.operatorCodes.append(
                schema.OperatorCodeT(
                    deprecatedBuiltinCode=code, builtinCode=code, version=1
                )
            )
            return len(codes)
        return codes.index(code)


def _lookup(editor, operator):
    """The rows in whole numbers, times their scales, which are looked up as well."""
    (ids, table), (result,) = operator.inputs, operator.outputs
    rows, row_scales = editor.result_like(result), editor.result_like(result, width=1)
    operator.inputs, operator.outputs = _ints(ids, editor.unscaled(table)), _ints(rows)
    editor.graph.operators.append(operator)
    editor.graph.operators.append(
        schema.OperatorT(
            opcodeIndex=operator.opcodeIndex,
            inputs=_ints(ids, editor.scales(table, 1)),
            outputs=_ints(row_scales),
        )
    )
    editor.operator(CODES.MUL, [rows, row_scales], result, schema.MulOptionsT())


def _product(editor, operator):
    """The product with whole numbers, times the scales, plus the bias."""
    vector, matrix, bias = [*operator.inputs, -1][:3]
    (result,) = operator.outputs
    activation = operator.builtinOptions.fusedActivationFunction
    product, has_bias = editor.result_like(result), bias >= 0
    scaled = editor.result_like(result) if has_bias else result
    operator.inputs = _ints(vector, editor.unscaled(matrix), -1)
    operator.outputs = _ints(product)
    operator.builtinOptions.fusedActivationFunction = 0
    editor.graph.operators.append(operator)
    multiply, add = schema.MulOptionsT(), schema.AddOptionsT()
    (add if has_bias else multiply).fusedActivationFunction = activation
    editor.operator(CODES.MUL, [product, editor.scales(matrix)], scaled, multiply)
    if has_bias:
        editor.operator(CODES.ADD, [scaled, bias], result, add)


def _has_scales(tensor):
    """Whether it is an int8 matrix with one scale per row."""
    quantization = tensor.quantization
    scale = None if quantization is None else quantization.scale
    return (
        tensor.type == schema.TensorType.INT8 and scale is not None and len(scale) > 1
    )


def _shapes(tensor):
    return tensor.shape, tensor.shapeSignature


def _ints(*indices):
    return np.array(indices, np.int32)
