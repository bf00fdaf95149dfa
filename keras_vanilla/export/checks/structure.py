"""Checks that a `.tflite` file contains each weight once, and little else."""

import math
from collections import Counter
from collections.abc import Iterator

from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.export.phone_operators import fused_attentions
from keras_vanilla.models.fake_quantization import SMALLEST_MATRIX
from keras_vanilla.models.transformer import Transformer

CHANNEL = 12  # bytes of scale and zero point per output of a quantised matrix
BYTES = {"int4": 0.56, "int8": 1.05}  # per parameter of a quantised matrix
FLOAT = 4.2  # bytes per parameter that is not quantised
GRAPH = 220_000  # bytes of operators, shapes and the counters of the tokenizer
LAYER = 100_000  # bytes of operators


def structure_faults(
    file: schema.ModelT,
    size: int,
    model: Transformer,
    quantize: str | None,
    tokenizer_bytes: int = 0,
) -> list[str]:
    """Finds faults in the structure of a file.

    It is a fault if a matrix is stored more often than necessary, if the file is too
    large, or if an output is the result of a loop, which compiled models cannot read.
    A file may have 1.05 bytes per parameter of a quantised matrix in int8 (0.56 in
    int4) and 12 for each of its outputs, 4.2 per other parameter, the tokenizer's
    tables, 0.1 MB per layer and 0.22 MB.

    Args:
        file: ModelT, the tables of a `.tflite` file.
        size: int. Size of the file in bytes.
        model: Transformer that was exported.
        quantize: "int8", "int4", or None for float32.
        tokenizer_bytes: int. Size of the tokenizer's tables in the file, see
            `TokenizerGraph.nbytes`; 0 if the file has no tokenizer.
    Returns:
        List of str, one sentence per fault.
    """
    faults = list(_duplicates(file, model))
    layers = model.num_encoder_layers + model.num_decoder_layers
    allowed = tokenizer_bytes + GRAPH + LAYER * layers
    for weight in model.weights:
        count = math.prod(weight.shape)
        is_rounded = quantize and len(weight.shape) > 1 and count >= SMALLEST_MATRIX
        allowed += count * (BYTES[quantize] if is_rounded else FLOAT)
        allowed += CHANNEL * _outputs(weight) if is_rounded else 0
    if size > allowed:
        faults.append(f"It has {size:,} bytes, more than {allowed:,.0f}.")
    faults += [
        f"The output {name!r} is the result of a loop, which compiled models of LiteRT "
        "and LiteRT.js cannot read."
        for name in _outputs_of_loops(file)
    ]
    return faults


def _outputs_of_loops(file) -> Iterator[str]:
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


def _duplicates(file, model) -> Iterator[str]:
    """Yields a sentence for each matrix stored more often than in the model."""
    tensors = {t.buffer: t for graph in file.subgraphs for t in graph.tensors}
    in_file = Counter(
        math.prod(map(int, tensors[index].shape))
        for index, buffer in enumerate(file.buffers)
        if buffer.data is not None
        and index in tensors
        and tensors[index].shape is not None
        and len(tensors[index].shape) == 2
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
