"""Common names for the weights of our layers, and what checkpoints have for them.

Each format has a table from its names to these. Kernels are matrices (inputs, outputs),
with the heads of an attention side by side; embeddings are (V, D).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_vanilla._readable import check_finite
from keras_vanilla.interop.files.stored_arrays import Reader
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)
from keras_vanilla.layers.positional_encoding import LAYOUTS
from keras_vanilla.models import Transformer

ATTENTION = ("query", "key", "value", "output")
SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")
ROUNDING = 2e-3  # of angles in float32 after 5,000 positions, and of float16


def attention_variables(attention: MultiHeadAttention) -> dict[str, keras.Variable]:
    """Returns the variables of an attention: "query/kernel", "query/bias", ...

    Args:
        attention: MultiHeadAttention that is built.
    """
    return {
        f"{name}/{kind}": variable
        for name in ATTENTION
        for kind, variable in _of_dense(getattr(attention, f"{name}_dense")).items()
    }


def layer_variables(layer: EncoderLayer | DecoderLayer) -> dict[str, keras.Variable]:
    """Returns the variables of a layer: "self_attention/query/kernel" and so on.

    Each sub-layer (`self_attention`, `cross_attention` in a decoder, `feed_forward`)
    has its variables, such as "feed_forward/inner/kernel" and
    "feed_forward/outer/kernel", and those of its normalisation, such as
    "self_attention_norm/gamma" and "/beta".

    Args:
        layer: EncoderLayer or DecoderLayer that is built.
    Raises:
        ValueError: if a sub-layer has another class than in the paper, such as a gated
            feed-forward network.
    """
    variables = {}
    for name in SUBLAYERS:
        sublayer = getattr(layer, name, None)
        if sublayer is None:  # only a decoder has a cross-attention
            continue
        _check_class(layer, name, sublayer)
        if name == "feed_forward":
            sublayer_variables = {
                f"{part}/{kind}": variable
                for part in ("inner", "outer")
                for kind, variable in _of_dense(getattr(sublayer, part)).items()
            }
        else:
            sublayer_variables = attention_variables(sublayer)
        norm = _of_norm(getattr(layer, f"{name}_residual").norm)
        variables.update(
            _under(name, sublayer_variables), **_under(f"{name}_norm", norm)
        )
    return variables


def model_variables(model: Transformer) -> dict[str, keras.Variable]:
    """Returns the variables of a Transformer: "encoder/0/self_attention/query/kernel".

    Also "source_embedding", "target_embedding" unless tied to the source's, "output"
    unless tied to the target's, "output_bias", and "encoder_norm/gamma" and "/beta".

    Args:
        model: Transformer of `EncoderLayer` and `DecoderLayer`.
    Raises:
        ValueError: as in `layer_variables`.
    """
    variables = {"source_embedding": model.source_embedding.embeddings}
    if model.target_embedding is not model.source_embedding:
        variables["target_embedding"] = model.target_embedding.embeddings
    for side in ("encoder", "decoder"):
        for i, layer in enumerate(getattr(model, f"{side}_layers")):
            variables.update(_under(f"{side}/{i}", layer_variables(layer)))
        norm = getattr(model, f"{side}_norm")
        if norm is not None:
            variables.update(_under(f"{side}_norm", _of_norm(norm)))
    if model.output_projection is not None:
        variables["output"] = model.output_projection.embeddings
    if model.logits_bias is not None:
        variables["output_bias"] = model.logits_bias.bias
    return variables


def load_layer(
    layer: EncoderLayer | DecoderLayer | MultiHeadAttention | TokenEmbedding,
    weights: Mapping[str, np.ndarray],
) -> None:
    """Loads weights of another model into a layer, which is built if necessary.

    Args:
        layer: one of our four layers with weights.
        weights: dict of the layer's names -> array, kernels as matrices. A
            TokenEmbedding has "embeddings".
    Raises:
        ValueError: if a name is missing or unknown, a shape differs, the layer has
            LoRA, or a sub-layer has another class.
    """
    if not layer.built:
        layer.build(*_input_shapes(layer, weights))
    if isinstance(layer, TokenEmbedding):
        variables = {"embeddings": layer.embeddings}
    elif isinstance(layer, MultiHeadAttention):
        variables = attention_variables(layer)
    else:
        variables = layer_variables(layer)
    assign_weights(variables, weights)


def check_setting(name: str, received: Any, expected: Any, theirs: Any) -> None:
    """Refuses one of our layers if a setting differs from the layer it replaces.

    Args:
        name: str. Our argument.
        received: its value.
        expected: the required value.
        theirs: the layer of another library with the expected value.
    Raises:
        ValueError: if the two values differ.
    """
    if received != expected:
        expected, received = (
            getattr(value, "__name__", value) for value in (expected, received)
        )
        raise ValueError(
            f"`layer` needs {name}={expected!r}, which is the "
            f"{type(theirs).__name__}'s. Received: {name}={received!r}"
        )


def refuse_overrides(theirs: Any, base: type) -> None:
    """Refuses a layer of a subclass that changes the computation of its base class.

    Args:
        theirs: a layer of another library, or of a subclass.
        base: the class of the library.
    Raises:
        TypeError: if a subclass overrides more than its constructor and its config.
    """
    classes = type(theirs).__mro__
    for each in classes[: classes.index(base)]:
        for name, value in vars(each).items():
            is_override = callable(value) and hasattr(base, name)
            if is_override and name not in ("__init__", "get_config"):
                raise TypeError(
                    f"`theirs` must compute what a {base.__name__} does. Received: a "
                    f"{type(theirs).__name__}, which overrides `{name}`"
                )


def read_weights(variables: Mapping[str, keras.Variable]) -> dict[str, np.ndarray]:
    """Returns the values of variables as float32 arrays, kernels as matrices.

    Args:
        variables: dict, as returned by the functions above.
    """
    return {
        name: np.asarray(keras.ops.convert_to_numpy(variable), dtype="float32").reshape(
            _plain_shape(name, variable)
        )
        for name, variable in variables.items()
    }


def assign_weights(
    variables: Mapping[str, keras.Variable], weights: Mapping[str, np.ndarray]
) -> None:
    """Assigns the values of another model to variables, all or none.

    Args:
        variables: dict, as returned by the functions above.
        weights: dict of the same names -> array, kernels as matrices.
    Raises:
        ValueError: if a name is missing or unknown, a shape differs, the layers have
            LoRA, or a number is NaN or infinite.
    """
    for name in (*variables, *weights):
        if name not in weights:
            raise ValueError(f"The weights have no {name!r}, which the layers need.")
        if name not in variables:
            raise ValueError(f"The layers have no place for the weights of {name!r}.")
    for name, variable in variables.items():
        if not isinstance(variable, keras.Variable):
            raise ValueError(
                f"The weights of {name!r} cannot be replaced: the layer has LoRA."
            )
        expected = _plain_shape(name, variable)
        values = weights[name]
        if tuple(values.shape) != expected:
            raise ValueError(
                f"The weights of {name!r} must have the shape {expected}. Received: "
                f"{tuple(values.shape)}"
            )
        check_finite(name, values)
    for name, variable in variables.items():
        variable.assign(np.reshape(weights[name], variable.shape))


class NamedArrays:
    """The arrays of a checkpoint, with a record of those that our layers use.

    Args:
        arrays: mapping of the checkpoint's names to arrays.
        path: the checkpoint's name in errors.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], path: object):
        self._arrays, self._path, self._known = arrays, path, set()

    def reader(
        self, name: str, change: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Reader:
        """Returns a function that reads a required array.

        Args:
            name: str. The array's name in the checkpoint.
            change: function that converts the array to ours, such as `np.transpose`, or
                None.
        Raises:
            ValueError: if the checkpoint has no such array.
        """
        if name not in self._arrays:
            raise ValueError(f"{self._path} has no weights {name!r}.")
        self._known.add(name)
        return lambda: (
            change(self._arrays[name]) if change is not None else self._arrays[name]
        )

    def one_of(self, names: Sequence[str]) -> Reader:
        """Returns a function that reads an array with several possible names.

        Raises:
            ValueError: if the checkpoint has none of the names, or different arrays
                under them.
        """
        present = [name for name in names if name in self._arrays]
        if not present:
            raise ValueError(f"{self._path} has no weights {names[0]!r}.")
        first, *others = present
        for name in others:
            if not np.array_equal(self._arrays[first], self._arrays[name]):
                raise ValueError(
                    f"{self._path} has different weights {first!r} and {name!r}, which "
                    "its configuration calls the same."
                )
        self._known.update(present)
        return self.reader(first)

    def refuse_others(self, may_be_ignored: Callable[[str], bool]) -> None:
        """Refuses weights that our layers do not have.

        Raises:
            ValueError: if there is one.
        """
        for name in self._arrays:
            if name not in self._known and not may_be_ignored(name):
                raise ValueError(
                    f"{self._path} has weights {name!r}, for which a vanilla "
                    "Transformer has no place."
                )


def sinusoids(layout: str, length: int, width: int) -> np.ndarray:
    """Returns the positions of our layer as a float32 table (length, width).

    Args:
        layout: str, as in `PositionalEncoding`.
        length: int.
        width: int.
    """
    nothing = np.zeros((1, length, width), "float32")
    table = PositionalEncoding(layout=layout, dtype="float32")(nothing)
    return np.asarray(table, dtype="float32")[0]


def layout_of(table: np.ndarray) -> str:
    """Returns the layout of the sinusoids in a table (length, width).

    Raises:
        ValueError: if the table has no known layout, such as learned positions.
    """
    for layout in LAYOUTS:
        expected = sinusoids(layout, *table.shape)
        if np.allclose(table, expected, rtol=0, atol=ROUNDING):
            return layout
    raise ValueError(
        "The positions must be sinusoids: learned positions are not the paper's. "
        f"Received: a table {table.shape} that differs from all layouts {LAYOUTS}"
    )


def _input_shapes(layer, weights):
    """Returns the input shapes to build a layer with these weights."""
    if isinstance(layer, TokenEmbedding):
        return ((None, None),)
    if isinstance(layer, MultiHeadAttention):
        kernels = [f"{name}/kernel" for name in ("query", "value", "key")]
    elif isinstance(layer, DecoderLayer):
        kernels = ["self_attention/query/kernel", "cross_attention/key/kernel"]
    else:
        kernels = ["self_attention/query/kernel"]
    for name in kernels:
        if name not in weights:
            raise ValueError(f"The weights have no {name!r}, which the layers need.")
    return [(None, None, weights[name].shape[0]) for name in kernels]


def _check_class(layer, name, sublayer):
    """Refuses other classes, including subclasses, which may compute differently."""
    expected = FeedForward if name == "feed_forward" else MultiHeadAttention
    if type(sublayer) is not expected:
        raise ValueError(
            f"`{name}` of {type(layer).__name__} must be a {expected.__name__}, which "
            f"other formats have too. Received: a {type(sublayer).__name__}"
        )


def _of_dense(dense):
    both = {"kernel": dense.kernel, "bias": dense.bias}
    return {kind: variable for kind, variable in both.items() if variable is not None}


def _of_norm(norm):
    return {"gamma": norm.gamma, "beta": norm.beta}


def _under(prefix, variables):
    return {f"{prefix}/{name}": variable for name, variable in variables.items()}


def _plain_shape(name, variable):
    """Returns the shape without heads: (D, N, H) -> (D, N H) and (N, H) -> (N H,)."""
    shape = tuple(variable.shape)
    if name.endswith("/bias"):
        return (int(np.prod(shape)),)
    if len(shape) == 3:
        *_, part, _kind = name.split("/")
        inputs = shape[:2] if part == "output" else shape[:1]
        outputs = shape[len(inputs) :]
        return int(np.prod(inputs)), int(np.prod(outputs))
    return shape
