"""Loads weights of layers of PyTorch into our layers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_vanilla.interop.layer_weights import (
    check_setting,
    load_layer,
    refuse_overrides,
)
from keras_vanilla.layers import DecoderLayer, EncoderLayer, MultiHeadAttention

ATTENTION = {  # their modules -> the names of `layer_weights`
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output",
}
LAYER = {
    **ATTENTION,
    "self_attn": "self_attention",
    "linear1": "feed_forward/inner",
    "linear2": "feed_forward/outer",
    "norm1": "self_attention_norm",
}
NAMES = {
    MultiHeadAttention: ATTENTION,
    EncoderLayer: {**LAYER, "norm2": "feed_forward_norm"},
    DecoderLayer: {
        **LAYER,
        "multihead_attn": "cross_attention",
        "norm2": "cross_attention_norm",
        "norm3": "feed_forward_norm",
    },
}
DENSE_WEIGHTS = {"weight": "kernel", "bias": "bias"}
NORM_WEIGHTS = {"weight": "gamma", "bias": "beta"}


def load_pytorch_layer(
    layer: EncoderLayer | DecoderLayer | MultiHeadAttention,
    theirs: Any,
) -> None:
    """Loads the weights of a layer of `torch.nn` into one of our layers.

    Outputs at real positions are then equal up to rounding.

    | theirs | layer |
    | --- | --- |
    | `TransformerEncoderLayer` | `EncoderLayer` |
    | `TransformerDecoderLayer` | `DecoderLayer` |
    | `MultiheadAttention` | `MultiHeadAttention` |

    Args:
        layer: one of the above, with the same sizes and settings. It is built if
            necessary.
        theirs: the PyTorch layer, whose settings are compared with `layer`'s; or its
            `state_dict()` of tensors or arrays. This does not contain the number of
            heads, the activation and the normalisation, which must match `layer`.
    Raises:
        TypeError: if `layer` or `theirs` is not one of these layers, or a subclass that
            changes the computation.
        ValueError: if `theirs` has settings or weights that `layer` does not have.
    Example:
        load_pytorch_layer(EncoderLayer(num_heads=8, d_ff=2048), their_layer)
    """
    kind = next((each for each in NAMES if isinstance(layer, each)), None)
    if kind is None:
        raise TypeError(
            "`layer` must be an EncoderLayer, a DecoderLayer or a MultiHeadAttention. "
            f"Received: a {type(layer).__name__}"
        )
    if not isinstance(theirs, Mapping):
        if not hasattr(getattr(theirs, "self_attn", theirs), "num_heads"):
            raise TypeError(
                "`theirs` must be a TransformerEncoderLayer, a TransformerDecoderLayer "
                "or a MultiheadAttention of torch.nn, or its state_dict(). Received: a "
                f"{type(theirs).__name__}"
            )
        for each in type(theirs).__mro__:
            if each.__module__.startswith("torch."):
                refuse_overrides(theirs, each)
                break
        _check_settings(layer, theirs)
        theirs = theirs.state_dict()
    load_layer(layer, layer_weights(kind, theirs))


def layer_weights(kind: type, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the weights of a layer of `torch.nn` under our names.

    Args:
        kind: class of our layer.
        state: `state_dict()` of the layer, with tensors or arrays.
    """
    return {
        _our_name(their_name, NAMES[kind]): each.T
        for name, value in state.items()
        for their_name, each in _single(name, as_array(value)).items()
    }


def layer_state(kind: type, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the `state_dict` of a layer of `torch.nn` with our weights.

    Args:
        kind: class of our layer: EncoderLayer or DecoderLayer.
        weights: dict of its weights, named as in `layer_weights.layer_variables`.
    """
    modules = {ours: theirs for theirs, ours in NAMES[kind].items()}
    state, projections = {}, {}
    for name, array in weights.items():
        *path, part, our_kind = name.split("/")
        their_kind = "bias" if our_kind in ("bias", "beta") else "weight"
        if part in ("query", "key", "value"):  # three in one array
            fused = f"{modules[path[0]]}.in_proj_{their_kind}"
            projections.setdefault(fused, []).append(array.T)
        else:
            full_name = "/".join([*path, part])
            module = modules.get(full_name) or f"{modules[path[0]]}.{modules[part]}"
            state[f"{module}.{their_kind}"] = array.T
    return state | {name: np.concatenate(each) for name, each in projections.items()}


def _check_settings(layer, theirs):
    """Refuses settings that change outputs without changing names or shapes."""
    attention = getattr(theirs, "self_attn", theirs)
    settings = {"num_heads": attention.num_heads}
    if attention is not theirs:
        settings |= {
            "activation": _activation_name(theirs.activation),
            "normalize_first": theirs.norm_first,
            "layer_norm_epsilon": theirs.norm1.eps,
        }
    for name, expected in settings.items():
        received = getattr(layer, name)
        check_setting(name, getattr(received, "__name__", received), expected, theirs)
    if attention.add_zero_attn:
        raise ValueError(
            "MultiHeadAttention cannot compute what a MultiheadAttention with "
            "add_zero_attn=True does."
        )


def _activation_name(activation):
    name = getattr(activation, "__name__", type(activation).__name__).lower()
    approximation = getattr(activation, "approximate", "none")  # of GELU
    return name if approximation == "none" else f"{name} ({approximation})"


def _single(name, array):
    """Splits an array of three projections into three, each named "module.kind"."""
    module, _, kind = name.rpartition("in_proj_")
    if kind in DENSE_WEIGHTS and name.endswith(f"in_proj_{kind}"):
        thirds = zip("qkv", np.split(array, 3), strict=True)
        return {f"{module}{letter}_proj.{kind}": third for letter, third in thirds}
    return {name.replace("_proj_weight", "_proj.weight"): array}


def _our_name(name, names):
    *modules, kind = name.split(".")
    path = [names.get(each, each) for each in modules]
    kinds = NORM_WEIGHTS if path and path[-1].endswith("_norm") else DENSE_WEIGHTS
    return "/".join([*path, kinds.get(kind, kind)])


def as_array(value: Any) -> np.ndarray:
    """Converts a PyTorch tensor of any device and precision to a float32 array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().float()
    return np.asarray(value, dtype="float32")
