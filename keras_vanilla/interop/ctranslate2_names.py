"""CTranslate2's names of the weights and settings of a Transformer, and ours."""

import itertools
from collections.abc import Mapping

import keras

EMBEDDINGS = {
    "source_embedding": "encoder/embeddings_0/weight",
    "target_embedding": "decoder/embeddings/weight",
}
OUTPUT = "decoder/projection/weight"
OUTPUT_BIAS = "decoder/projection/bias"
STACKS = "encoder", "decoder"
POSITIONS = {side: f"{side}/position_encodings/encodings" for side in STACKS}
LINEARS = {  # of a layer; theirs may be several of ours, stacked vertically
    "self_attention/linear_0": [
        f"self_attention/{x}" for x in ("query", "key", "value")
    ],
    "self_attention/linear_1": ["self_attention/output"],
    "attention/linear_0": ["cross_attention/query"],
    "attention/linear_1": ["cross_attention/key", "cross_attention/value"],
    "attention/linear_2": ["cross_attention/output"],
    "ffn/linear_0": ["feed_forward/inner"],
    "ffn/linear_1": ["feed_forward/outer"],
}
NORMS = {
    "self_attention/layer_norm": "self_attention_norm",
    "attention/layer_norm": "cross_attention_norm",
    "ffn/layer_norm": "feed_forward_norm",
}
KINDS = {"weight": "kernel", "bias": "bias", "gamma": "gamma", "beta": "beta"}
ACTIVATIONS = {"relu": 0, "silu": 2, "gelu": 3, "tanh": 5, "sigmoid": 6}
NO_NAMES = {1: "GELU by tanh", 4: "GELU by sigmoid"}  # activations that Keras lacks


def fused_weights(depths: Mapping[str, int], final_norm: bool) -> dict[str, list[str]]:
    """Returns our names of the weights that form each of theirs in both stacks.

    Args:
        depths: dict with the number of layers of "encoder" and "decoder".
        final_norm: bool. Whether the stacks end with a normalisation.
    Returns:
        Dict of their name -> list of ours. Their kernels are transposed.
    """
    of_layer = {
        **{f"{name}/weight": ours for name, ours in LINEARS.items()},
        **{f"{name}/bias": ours for name, ours in LINEARS.items()},
        **{f"{name}/gamma": [ours] for name, ours in NORMS.items()},
        **{f"{name}/beta": [ours] for name, ours in NORMS.items()},
    }
    parts = {}
    for side, depth in depths.items():
        for index, theirs in itertools.product(range(depth), of_layer):
            if side == "decoder" or not theirs.startswith("attention/"):
                kind = KINDS[theirs.rpartition("/")[2]]
                parts[f"{side}/layer_{index}/{theirs}"] = [
                    f"{side}/{index}/{name}/{kind}" for name in of_layer[theirs]
                ]
        if final_norm:
            parts |= last_norm(side)
    return parts


def last_norm(side: str) -> dict[str, list[str]]:
    """Returns their names of the last normalisation of a stack -> ours."""
    kinds = "gamma", "beta"
    return {f"{side}/layer_norm/{kind}": [f"{side}_norm/{kind}"] for kind in kinds}


def activation_number(name: str) -> int | None:
    """Returns CTranslate2's number of an activation, or None if it is not supported.

    Args:
        name: str. Name of a Keras activation; "swish" is "silu".
    """
    function = keras.activations.get(name)
    for ours, number in ACTIVATIONS.items():
        if keras.activations.get(ours) is function:
            return number
    return None
