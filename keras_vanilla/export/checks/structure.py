"""Is a `.tflite` file made as it should be: each weight once, and nothing else?"""

import math
from collections import Counter

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.export.sentencepiece.tokenizer_graph import TextDecoder, TextEncoder

SMALLEST = 1024  # numbers; the converter does not quantise smaller matrices
CHANNEL = 12  # bytes of scale and zero point, for each output of an int8 matrix
SHAPES = 2_000  # bytes
COUNTERS = 20_000


def faults(content, translator):
    """What is wrong with how a file is made.

    A matrix that is there more often than in the model; constants of more than 1.05
    bytes a parameter in int8 (4.2 in float32), 12 for each output of a quantised
    matrix, 2 kB for shapes, in the text form the tokenizer's tables and 20 kB for its
    counters; and of more than 0.1 MB a layer and 0.2 MB for all that is no constant.

    Args:
        content: bytes of a `.tflite` file.
        translator: Translator that it was made from.
    Returns:
        List of str, sentences.
    """
    file = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    constants, model = _constants(file), translator.model
    found = list(_twice(constants, model))
    scales = sum(each.channels for each in constants)
    used = sum(each.size for each in constants) + CHANNEL * scales
    quantized = scales > 0
    allowed = (1.05 if quantized else 4.2) * model.count_params()
    outputs = sum(map(_outputs, model.weights)) if quantized else 0
    allowed += CHANNEL * outputs + SHAPES
    if any(each.signatureKey == b"translate" for each in file.signatureDefs):
        allowed += _tables(translator.tokenizer) + COUNTERS
    if used > allowed:
        found.append(f"Its constants are {used:,} bytes, more than {allowed:,.0f}.")
    layers = model.num_encoder_layers + model.num_decoder_layers
    rest, allowed = len(content) - used, 100_000 * layers + 200_000
    if rest > allowed:
        found.append(
            f"What is no constant takes {rest:,} bytes, more than {allowed:,} for "
            f"{layers} layers."
        )
    return found


class _Constant:
    """A buffer of the file, with the tensor that is in it."""

    def __init__(self, tensor, size):
        self.size = size
        self.shape = () if tensor.shape is None else tuple(map(int, tensor.shape))
        scale = tensor.quantization and tensor.quantization.scale
        self.channels = 0 if scale is None else len(scale)


def _constants(file):
    tensors = {t.buffer: t for graph in file.subgraphs for t in graph.tensors}
    return [
        _Constant(tensors[number], len(buffer.data))
        for number, buffer in enumerate(file.buffers)
        if buffer.data is not None and number in tensors
    ]


def _twice(constants, model):
    """The matrices that are there more often than in the model, by their size."""
    there = Counter(math.prod(each.shape) for each in constants if len(each.shape) == 2)
    wanted = Counter(math.prod(w.shape) for w in model.weights if len(w.shape) > 1)
    for size, count in sorted(wanted.items()):
        if size >= SMALLEST and there[size] > count:
            yield (
                f"Matrices of {size:,} numbers are in it {there[size]} times, and in "
                f"the model {count} times."
            )


def _outputs(weight):
    """Of a matrix, how many outputs it has; the table's are its rows."""
    if len(weight.shape) < 2:
        return 0
    table = weight.path.endswith("embeddings")
    return weight.shape[0] if table else math.prod(weight.shape[1:])


def _tables(tokenizer):
    """The size of the tokenizer's tables, in bytes."""
    encoder = TextEncoder(tokenizer.source_model, 1, 1, tokenizer.end_id, 0)
    decoder = TextDecoder(tokenizer.target_model, 1, tokenizer.end_id)
    return sum(array.nbytes for part in (encoder, decoder) for array in _arrays(part))


def _arrays(part):
    """The NumPy arrays of an object and of what it is made of."""
    for value in vars(part).values():
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, np.ndarray):
                yield each
            elif type(each).__module__.startswith("keras_vanilla"):
                yield from _arrays(each)
