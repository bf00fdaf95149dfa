"""Converts models around `torch.nn.Transformer` to our Transformer, and back."""

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_vanilla._checks import some_of
from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.torch_file import read_torch
from keras_vanilla.interop.layer_weights import (
    assign_weights,
    layout_of,
    model_variables,
    read_weights,
    sinusoids,
)
from keras_vanilla.interop.pytorch_layers import as_array, layer_state, layer_weights
from keras_vanilla.layers import DecoderLayer, EncoderLayer
from keras_vanilla.models import Transformer

STACKS = {"encoder": EncoderLayer, "decoder": DecoderLayer}
FIRST = "encoder.layers.0.self_attn.in_proj_weight"
NUMBER = re.compile(r"layers\.(\d+)\.(.*)")
TABLES = {  # in PyTorch's own tutorial on translation
    "source_embedding": "src_tok_emb.embedding.weight",
    "target_embedding": "tgt_tok_emb.embedding.weight",
    "output": "generator.weight",
}
POSITIONS = "positional_encoding.pos_embedding"  # (L, 1, D)


def from_pytorch(
    state: Mapping[str, Any] | PathLike,
    *,
    num_heads: int,
    pad_id: int,
    start_id: int,
    end_id: int,
    source_embedding: str = TABLES["source_embedding"],
    target_embedding: str = TABLES["target_embedding"],
    output: str = TABLES["output"],
    positions: str | None = POSITIONS,
    **settings: Any,
) -> Transformer:
    """Converts a PyTorch model around `torch.nn.Transformer` to a Transformer.

    Sizes, depths and last normalisations are inferred from the weights. Other settings
    must be given: the number of heads, the ids, and all differences from PyTorch's
    defaults, such as `normalize_first=True` or `activation="gelu"`. PyTorch's
    `batch_first` does not matter.

    Args:
        state: `state_dict()` of the model, or the path of a file that was written by
            `torch.save`; no code in it is run.
        num_heads: int. As in `torch.nn.Transformer`.
        pad_id: int. The id that the model was trained with.
        start_id: int. The same.
        end_id: int. The same.
        source_embedding: str. Name of the source's table (V, D). The defaults for this
            and the next names are those of PyTorch's tutorial on translation.
        target_embedding: str. Name of the target's table; the source's if tied.
        output: str. Name of the output layer's kernel (V, D); that of the target's
            table if tied.
        positions: str or None. Name of the table of positions, if the state has one. It
            must contain sinusoids, and determines `position_layout` and `max_length`.
        settings: other arguments of `Transformer`.
    Raises:
        OSError: if the file cannot be read.
        ValueError: if the state has no `torch.nn.Transformer`, a name is missing or
            unknown, or positions are not sinusoids.
    Example:
        model = from_pytorch(
            "model.pt", num_heads=8, pad_id=1, start_id=2, end_id=3
        )
    """
    if isinstance(state, str | os.PathLike):
        state = read_torch(state)
    names = {
        "source_embedding": source_embedding,
        "target_embedding": target_embedding,
        "output": output,
    }
    prefix = _prefix(state)
    weights, has_norm = _stack_weights(state, prefix)
    weights |= _table_weights(state, names)
    _refuse_others(state, prefix, {*names.values(), _bias_of(output), positions})
    if positions is not None and positions in state:
        table = as_array(state[positions])
        table = table.reshape(-1, table.shape[-1])
        inferred = {"position_layout": layout_of(table), "max_length": len(table)}
        settings = inferred | settings
    model = Transformer(
        **_sizes(weights),
        share_embeddings=source_embedding == target_embedding,
        tie_output="output" not in weights,
        output_bias="output_bias" in weights,
        final_norm=has_norm,
        num_heads=num_heads,
        pad_id=pad_id,
        start_id=start_id,
        end_id=end_id,
        **settings,
    )
    assign_weights(model_variables(model), weights)
    return model


def to_pytorch(model: Transformer) -> dict[str, np.ndarray]:
    """Converts weights of a Transformer to the names of PyTorch's translation tutorial.

    `{name: torch.tensor(array) for name, array in to_pytorch(model).items()}` is a
    `state_dict` of the tutorial's model: a `torch.nn.Transformer` named "transformer"
    with the same `num_heads`, `activation` and `norm_first`, the tables, the output
    layer and the positions. There are last normalisations only if `model` has them.

    Args:
        model: Transformer of `EncoderLayer` and `DecoderLayer`.
    Returns:
        Dict of float32 arrays.
    """
    weights = read_weights(model_variables(model))
    source = weights["source_embedding"]
    target = weights.get("target_embedding", source)
    size = model.target_vocabulary_size
    positions = sinusoids(model.position_layout, model.max_length, model.d_model)
    state = {
        TABLES["source_embedding"]: source,
        TABLES["target_embedding"]: target,
        TABLES["output"]: weights.get("output", target),
        "generator.bias": weights.get("output_bias", np.zeros(size, "float32")),
        POSITIONS: positions[:, None],  # (L, 1, D)
    }
    for side, kind in STACKS.items():
        prefix = f"transformer.{side}"
        for i in range(getattr(model, f"num_{side}_layers")):
            layer = _below(weights, f"{side}/{i}/")
            for name, array in layer_state(kind, layer).items():
                state[f"{prefix}.layers.{i}.{name}"] = array
        norm = _below(weights, f"{side}_norm/")
        if norm:
            state[f"{prefix}.norm.weight"] = norm["gamma"]
            state[f"{prefix}.norm.bias"] = norm["beta"]
    return state


def _prefix(state):
    """Returns the prefix of the names of the `torch.nn.Transformer` in a state."""
    first = [name for name in state if name.endswith(FIRST)]
    if len(first) != 1:
        raise ValueError(
            "The state must have the weights of one torch.nn.Transformer, with one "
            f"name that ends with {FIRST!r}. Received: {some_of(list(state), 5) or {}}"
        )
    return first[0].removesuffix(FIRST)


def _stack_weights(state, prefix):
    """Returns the weights of encoder and decoder, and whether they have a last norm."""
    weights, has_norm = {}, False
    for side, kind in STACKS.items():
        layers = {}
        for name, value in _below(state, f"{prefix}{side}.").items():
            match = NUMBER.fullmatch(name)
            if match:
                layers.setdefault(int(match[1]), {})[match[2]] = value
            else:
                has_norm = True
                ours = {"norm.weight": "gamma", "norm.bias": "beta"}.get(name, name)
                weights[f"{side}_norm/{ours}"] = as_array(value)
        for i, layer in layers.items():
            for name, array in layer_weights(kind, layer).items():
                weights[f"{side}/{i}/{name}"] = array
    return weights, has_norm


def _table_weights(state, names):
    tables = {}
    for ours, name in names.items():
        if name not in state:
            matrices = [each for each in state if len(np.shape(state[each])) == 2]
            raise ValueError(
                f"The state has no {name!r}: give the name of the table as `{ours}`. "
                f"Its matrices are {some_of(matrices, 20)}"
            )
        if name not in [names[before] for before in tables]:
            tables[ours] = as_array(state[name])
    bias = _bias_of(names["output"])
    return tables | ({"output_bias": as_array(state[bias])} if bias in state else {})


def _bias_of(kernel):
    return kernel.removesuffix("weight") + "bias"


def _refuse_others(state, prefix, known):
    stacks = tuple(f"{prefix}{side}." for side in STACKS)
    for name in state:
        if not name.startswith(stacks) and name not in known:
            raise ValueError(
                f"The state has weights {name!r}, which have no place here; if they "
                "are a table, give their name as `source_embedding`, "
                "`target_embedding`, `output` or `positions`."
            )


def _sizes(weights):
    depths = {}
    for side in STACKS:
        indices = {name.split("/")[0] for name in _below(weights, f"{side}/")}
        depths[f"num_{side}_layers"] = len(indices)
    target = weights.get("target_embedding", weights["source_embedding"])
    return {
        "source_vocabulary_size": len(weights["source_embedding"]),
        "target_vocabulary_size": len(target),
        "d_model": target.shape[1],
        "d_ff": weights["encoder/0/feed_forward/inner/kernel"].shape[1],
        "decoder_d_ff": weights["decoder/0/feed_forward/inner/kernel"].shape[1],
        **depths,
    }


def _below(weights, prefix):
    """Returns the entries whose names begin with the prefix, which is removed."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }
