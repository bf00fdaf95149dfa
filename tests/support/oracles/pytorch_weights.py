"""Weights of our layers under the names and in the shapes of `torch.nn`'s."""

import numpy as np


def encoder_layer_weights(torch, weights):
    return _state(torch, weights, {"self_attn": "self_attention"}, ["self_attention"])


def decoder_layer_weights(torch, weights):
    attentions = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}
    return _state(torch, weights, attentions, list(attentions.values()))


def _state(torch, weights, attentions, sublayers):
    state = {}
    for theirs, ours in attentions.items():
        kernels, biases = (
            [weights[f"{ours}/{part}/{kind}"] for part in ("query", "key", "value")]
            for kind in ("kernel", "bias")
        )
        matrices = [kernel.reshape(len(kernel), -1).T for kernel in kernels]
        output = weights[f"{ours}/attention_output/kernel"]
        state[f"{theirs}.in_proj_weight"] = np.concatenate(matrices)
        state[f"{theirs}.in_proj_bias"] = np.concatenate([b.ravel() for b in biases])
        state[f"{theirs}.out_proj.weight"] = output.reshape(-1, output.shape[-1]).T
        state[f"{theirs}.out_proj.bias"] = weights[f"{ours}/attention_output/bias"]
    for theirs, ours in (("linear1", "inner"), ("linear2", "outer")):
        state[f"{theirs}.weight"] = weights[f"feed_forward/{ours}/kernel"].T
        state[f"{theirs}.bias"] = weights[f"feed_forward/{ours}/bias"]
    for number, name in enumerate([*sublayers, "feed_forward"], 1):
        state[f"norm{number}.weight"] = weights[f"{name}_residual/norm/gamma"]
        state[f"norm{number}.bias"] = weights[f"{name}_residual/norm/beta"]
    return {
        name: torch.tensor(np.ascontiguousarray(value), dtype=torch.float32)
        for name, value in state.items()
    }
