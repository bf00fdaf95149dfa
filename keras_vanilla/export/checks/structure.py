"""Checks that a `.tflite` file contains each weight once, and little else."""

import math
from collections import Counter

from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.export.phone_operators import fused_attentions
from keras_vanilla.models.fake_quantization import SMALLEST_MATRIX
from keras_vanilla.models.transformer import Transformer

CHANNEL = 12  # bytes of scale and zero point per output of a quantised matrix
BYTES = {schema.TensorType.INT4: 0.56, schema.TensorType.INT8: 1.05}  # per parameter
FLOAT = 4.2  # bytes per parameter that is not quantised
SHAPES = 2_000  # bytes
COUNTERS = 20_000  # bytes, of the tokenizer's loops


def structure_faults(
    file: schema.ModelT, size: int, model: Transformer, tokenizer_bytes: int = 0
) -> list[str]:
    """Finds faults in the structure of a file.

    It is a fault if a matrix is stored more often than necessary, if a size is
    exceeded, or if an output is the result of a loop, which compiled models cannot
    read. Constants may have 1.05 bytes per parameter of a quantised matrix in int8
    (0.56 in int4), 12 for each of its outputs, 4.2 per other parameter, 2 kB for
    shapes, and in the text form the tokenizer's tables and 20 kB for its counters.
    Everything else may have 0.1 MB per layer and 0.2 MB.

    Args:
        file: ModelT, the tables of a `.tflite` file.
        size: int. Size of the file in bytes.
        model: Transformer that was exported.
        tokenizer_bytes: int. Size of the tokenizer's tables in the file, see
            `TokenizerGraph.nbytes`; 0 if the file has no tokenizer.
    Returns:
        List of str, one sentence per fault.
    """
    tensors = {t.buffer: t for graph in file.subgraphs for t in graph.tensors}
    constants = [
        _Constant(tensors[index], len(buffer.data))
        for index, buffer in enumerate(file.buffers)
        if buffer.data is not None and index in tensors
    ]
    faults = list(_duplicates(constants, model))
    used = sum(each.size + CHANNEL * each.channels for each in constants)
    types = {each.type for each in constants if each.channels}
    per_number = next((size for kind, size in BYTES.items() if kind in types), FLOAT)
    allowed = SHAPES
    for weight in model.weights:
        count, is_matrix = math.prod(weight.shape), len(weight.shape) > 1
        # Vectors and small matrices stay float32.
        is_rounded = is_matrix and count >= SMALLEST_MATRIX
        allowed += count * (per_number if is_rounded else FLOAT)
        if is_matrix and types:
            allowed += CHANNEL * _outputs(weight)
    if tokenizer_bytes:
        allowed += tokenizer_bytes + COUNTERS
    if used > allowed:
        faults.append(f"Its constants are {used:,} bytes, more than {allowed:,.0f}.")
    layers = model.num_encoder_layers + model.num_decoder_layers
    rest, allowed = size - used, 100_000 * layers + 200_000
    if rest > allowed:
        faults.append(
            f"All that is not a constant takes {rest:,} bytes, more than {allowed:,} "
            f"for {layers} layers."
        )
    faults += [
        f"The output {name!r} is the result of a loop, which compiled models of LiteRT "
        "and LiteRT.js cannot read."
        for name in _outputs_of_loops(file)
    ]
    return faults


class _Constant:
    """A constant of the file: a buffer with its tensor."""

    def __init__(self, tensor, size):
        self.size, self.type = size, tensor.type
        self.shape = () if tensor.shape is None else tuple(map(int, tensor.shape))
        scale = tensor.quantization and tensor.quantization.scale
        self.channels = 0 if scale is None else len(scale)


def _outputs_of_loops(file):
    """Yields the name of each output of a signature that a loop computes last."""
    codes = [code.builtinCode for code in file.operatorCodes]
    for signature in file.signatureDefs or ():
        results = {
            index
            for operator in file.subgraphs[signature.subgraphIndex].operators
            if codes[operator.opcodeIndex] == schema.BuiltinOperator.WHILE
            for index in operator.outputs
        }
        for output in signature.outputs:
            if output.tensorIndex in results:
                yield output.name.decode()


def _duplicates(constants, model):
    """Yields a sentence for each matrix stored more often than in the model."""
    in_file = Counter(
        math.prod(each.shape) for each in constants if len(each.shape) == 2
    )
    in_model = Counter(math.prod(w.shape) for w in model.weights if len(w.shape) > 1)
    for attention in fused_attentions(model):
        size = math.prod(attention.query_dense.kernel.shape)
        in_model[size] -= 3
        in_model[3 * size] += 1
    for size, count in sorted(in_model.items()):
        if size >= SMALLEST_MATRIX and in_file[size] > count:
            yield (
                f"Matrices of {size:,} numbers are in the file {in_file[size]} times, "
                f"and in the model {count} times."
            )


def _outputs(weight):
    """Number of outputs of a matrix, or of rows of a table."""
    if weight.path.endswith("embeddings"):
        return weight.shape[0]
    joins_heads = weight.path.endswith("attention_output/kernel")  # (N, H, D)
    return weight.shape[-1] if joins_heads else math.prod(weight.shape[1:])
