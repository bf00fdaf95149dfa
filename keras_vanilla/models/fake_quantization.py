"""Fake quantisation: a model that computes as its quantised `.tflite` file does."""

import math
from collections.abc import Iterator

import keras
from keras import ops

from keras_vanilla._checks import check_choice, some_of
from keras_vanilla._types import Tensor
from keras_vanilla.layers import TokenEmbedding
from keras_vanilla.layers.dense import Dense, HeadProjection, MatrixProducts

MODES = ("int8", "int4", None)
LARGEST = {"int8": 127, "int4": 7}  # largest quantised weight; the smallest is minus it
SMALLEST_MATRIX = 1024  # weights; smaller matrices stay float32 in the files


def fake_quantize(model: keras.Model, mode: str | None) -> None:
    """Makes a model compute, and train, as its quantised `.tflite` file computes.

        x W = (round(x / s_x) - z) round(W / s_W) * s_x s_W

    Each column of a matrix and each row of an embedding table has a scale,
    `s_W = max |w| / 127` (7 in int4). Each row of inputs has a scale s_x and a zero
    point z, which map its range and 0 to 8 bits, as LiteRT does when a file runs.
    Everything else is computed as before. The stored weights do not change; only the
    computation rounds them, and gradients pass through unchanged (straight-through).

    This applies to the model object, not to copies or saved files. Compile the model
    afterwards.

    Args:
        model: keras.Model in float32, such as a Transformer, whose matrices are all in
            layers of this package.
        mode: "int8", "int4", or None, which undoes it.
    Raises:
        ValueError: if the mode is unknown, or a matrix is in another type of layer or
            used in another precision.
    Example:
        >>> from keras_vanilla import Transformer
        >>> model = Transformer.from_preset("tiny", source_vocabulary_size=11)
        >>> fake_quantize(model, "int8")
        >>> fake_quantize(model, None)

    Source: Jacob et al. 2018, section 3; Bengio et al. 2013 for the gradients.
    """
    check_choice("quantize", mode, MODES)
    layers = {id(layer): layer for layer in model._flatten_layers()}.values()
    if mode is not None:
        _check_matrices(layers)
    for layer in layers:
        if isinstance(layer, MatrixProducts):
            is_rounded = mode is not None and list(_matrices(layer))
            layer.rounding = _Rounding(LARGEST[mode]) if is_rounded else None
    model.fake_quantization = mode
    for function in ("train_function", "test_function", "predict_function"):
        setattr(model, function, None)  # these were traced with the previous rounding


class _Rounding:
    """Computes with weights, and rows that they multiply, rounded to integers."""

    def __init__(self, largest):
        self._largest = largest

    def matmul(self, rows, matrix):
        """The product (R, F) of rows (R, D) and a matrix (D, F)."""
        x, row_scale = rounded_inputs(rows)
        integers, scale = rounded(matrix, 0, self._largest)
        return ops.matmul(x, integers) * row_scale * ops.squeeze(scale, 0)

    def rows(self, rows):
        """Rows (..., D) of a table."""
        integers, scale = rounded(rows, -1, self._largest)
        return integers * scale


def rounded(weights: Tensor, axis: int, largest: int) -> tuple[Tensor, Tensor]:
    """Rounds weights to integers, with one scale for the numbers along an axis.

    Args:
        weights: float32 tensor.
        axis: int. Numbers along this axis share a scale.
        largest: int. The largest integer.
    Returns:
        Float32 tensors: the integers, and the scales, which have size 1 on that axis.
    """
    highest = ops.max(ops.abs(ops.stop_gradient(weights)), axis=axis, keepdims=True)
    # TensorFlow multiplies by the reciprocal of a constant, which rounds differently.
    is_any = highest > 0
    scale = ops.where(is_any, highest, 1.0) / ops.where(is_any, float(largest), 1.0)
    return _round(weights / scale), scale


def rounded_inputs(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds each row of inputs to integers minus its zero point, with a scale.

    Args:
        inputs: float32 tensor (..., D).
    Returns:
        Float32 tensors: (..., D) of integers from -255 to 255, and the scales (..., 1).
    """
    values = ops.stop_gradient(inputs)
    low = ops.minimum(ops.min(values, axis=-1, keepdims=True), 0.0)
    high = ops.maximum(ops.max(values, axis=-1, keepdims=True), 0.0)
    is_any = high > low
    inverse = ops.where(is_any, 255.0, 1.0) / ops.where(is_any, high - low, 1.0)
    least, most = -128.0 - low * inverse, 127.0 - high * inverse
    # LiteRT computes the zero point from the end of the range with the smaller error.
    from_low = (low * inverse - 128.0) + (high * inverse + 127.0) > 0.0
    zero = ops.round(ops.clip(ops.where(from_low, least, most), -128.0, 127.0))
    integers = ops.clip(ops.round(values * inverse) + zero, -128.0, 127.0) - zero
    scaled = inputs * inverse
    # TensorFlow computes a reciprocal, 1 / x, differently from other quotients.
    scale = ops.where(is_any, 1.0, 2.0) / inverse
    return integers + (scaled - ops.stop_gradient(scaled)), scale


def _check_matrices(layers):
    """Refuses matrices that the files quantise but this module cannot round alike."""
    for layer in layers:
        paths = [weight.path for weight in _matrices(layer)]
        if paths and not _rounds(layer):
            raise ValueError(
                "Fake quantisation supports only float matrices in this package's "
                "FeedForward, TokenEmbedding and attentions. Received: "
                f"{some_of(paths)}"
            )
        if paths and layer.compute_dtype != "float32":  # the scales would differ
            raise ValueError(
                "Fake quantisation computes in float32, as the files do. Use "
                "`translator.in_float32()` or `model.copy(dtype='float32')`. Received: "
                f"{layer.path} in {layer.dtype_policy.name}"
            )


def _matrices(layer) -> Iterator[keras.Variable]:
    """Matrices of the layer itself that are quantised in the files."""
    inner = layer._flatten_layers(include_self=False)
    others = {id(weight) for each in inner for weight in each.weights}
    for weight in layer.weights:
        is_large = len(weight.shape) > 1 and math.prod(weight.shape) >= SMALLEST_MATRIX
        if is_large and weight.name != "bias" and id(weight) not in others:
            yield weight


def _rounds(layer):
    """Returns True if a layer computes all its products by `matmul`."""
    is_dense = type(layer).call in (Dense.call, HeadProjection.call)
    return is_dense or isinstance(layer, TokenEmbedding)


def _round(values):
    """Rounds values; the gradient passes through unchanged."""
    return ops.stop_gradient(ops.round(values)) + (values - ops.stop_gradient(values))
