"""Builds encoder and decoder from the arguments of a Transformer."""

from typing import Any

import keras

from keras_vanilla._checks import (
    check_choice,
    check_integer,
    check_number,
    check_probability,
)
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    PositionalEncoding,
    TokenEmbedding,
)
from keras_vanilla.layers.positional_encoding import LAYOUTS
from keras_vanilla.models.decoder import Decoder
from keras_vanilla.models.encoder import Encoder
from keras_vanilla.models.registry import layer_maker

COUNTS = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "d_model",
    "num_heads",
    "d_ff",
    "max_length",
)
DEPTHS = ("num_encoder_layers", "num_decoder_layers")
MOST_LAYERS = 1000  # per stack, as in the deepest published Transformers
IDS = ("pad_id", "start_id", "end_id")
MAKERS = ("encoder_layer", "decoder_layer")
OF_LAYERS = (
    "num_heads",
    "d_ff",
    "dropout",
    "attention_dropout",
    "activation",
    "normalize_first",
    "layer_norm_epsilon",
)


def checked(config: dict) -> dict:
    """Checks the type and range of each argument of a Transformer, and converts it.

    Args:
        config: dict of arguments by name.
    Raises:
        ValueError: if an argument is out of range, or two contradict each other.
    """
    if config["target_vocabulary_size"] is None:
        config["target_vocabulary_size"] = config["source_vocabulary_size"]
    for name in COUNTS:
        config[name] = check_integer(name, config[name], 1)
    for name in DEPTHS:
        config[name] = check_integer(name, config[name], 1, MOST_LAYERS)
    for name in IDS:
        config[name] = check_integer(name, config[name], 0)
    if config["pad_id"] == config["end_id"]:
        raise ValueError(
            "`pad_id` and `end_id` must be different: a search ends at one and fills "
            f"up with the other. Received: pad_id=end_id={config['end_id']}"
        )
    config["dropout"] = check_probability("dropout", config["dropout"])
    if config["attention_dropout"] is not None:
        rate = check_probability("attention_dropout", config["attention_dropout"])
        config["attention_dropout"] = rate
    epsilon = check_number("layer_norm_epsilon", config["layer_norm_epsilon"], least=0)
    config["layer_norm_epsilon"] = epsilon
    if config["decoder_d_ff"] is not None:
        width = check_integer("decoder_d_ff", config["decoder_d_ff"], 1)
        config["decoder_d_ff"] = width
    ids, size = config["forbidden_ids"], config["target_vocabulary_size"]
    if not isinstance(ids, list | tuple):
        raise ValueError(
            f"`forbidden_ids` must be a list of ids. Received: {ids!r:.80}"
        )
    ids = [check_integer("forbidden_ids", id_, 0, size - 1) for id_ in ids]
    if config["end_id"] in ids:
        raise ValueError(
            "`forbidden_ids` cannot have the id that ends an output. Received: "
            f"end_id={config['end_id']}"
        )
    config["forbidden_ids"] = ids
    check_choice("position_layout", config["position_layout"], LAYOUTS)
    for name in MAKERS:
        config[name] = layer_maker(name, config[name])
    if config["d_model"] % config["num_heads"]:
        raise ValueError(
            "`d_model` must be divisible by `num_heads`. Received: "
            f"d_model={config['d_model']}, num_heads={config['num_heads']}"
        )
    sizes = config["source_vocabulary_size"], config["target_vocabulary_size"]
    if config["share_embeddings"] and sizes[0] != sizes[1]:
        raise ValueError(
            "`share_embeddings=True` needs vocabularies of one size. Received: "
            f"source_vocabulary_size={sizes[0]}, target_vocabulary_size={sizes[1]}"
        )
    return config


def encoder_and_decoder(
    config: dict, embeddings: Any, policy: keras.DTypePolicy
) -> tuple[Encoder, Decoder]:
    """Creates encoder and decoder, which share positions and optionally a table.

    Args:
        config: dict of arguments of the Transformer.
        embeddings: initial value of the table, a pair of them, or None.
        policy: precision policy of every layer.
    """
    source, target, output = _tables(config, embeddings, policy)
    positions = PositionalEncoding(
        layout=config["position_layout"],
        dropout=config["dropout"],
        name="positions",
        dtype=policy,
    )
    final_norm = config["final_norm"]
    if final_norm is None:
        final_norm = config["normalize_first"]
    epsilon = config["layer_norm_epsilon"]
    norms = [
        keras.layers.LayerNormalization(
            epsilon=epsilon, name=f"{side}_norm", dtype=policy
        )
        if final_norm
        else None
        for side in ("encoder", "decoder")
    ]
    encoder = Encoder(
        source,
        positions,
        _layers("encoder", EncoderLayer, config, policy),
        norms[0],
        None if config["source_end"] else config["end_id"],
    )
    decoder = Decoder(
        target,
        positions,
        _layers("decoder", DecoderLayer, config, policy),
        norms[1],
        output,
        _Bias(name="logits_bias", dtype="float32") if config["output_bias"] else None,
    )
    return encoder, decoder


def _tables(config, values, policy):
    """The tables of source, target and output projection, which may be shared."""

    def table(side, value, name, zero_pad=config["zero_pad"]):
        return TokenEmbedding(
            config[f"{side}_vocabulary_size"],
            config["d_model"],
            pad_id=config["pad_id"],
            scale=config["scale_embeddings"],
            zero_pad=zero_pad,
            embeddings=value,
            name=name,
            dtype=policy,
        )

    if config["share_embeddings"]:
        source = target = table("source", values, "embedding")
    else:
        of_source, of_target = (None, None) if values is None else values
        source = table("source", of_source, "source_embedding")
        target = table("target", of_target, "target_embedding")
    if config["tie_output"]:
        return source, target, target
    return source, target, table("target", None, "output_projection", zero_pad=False)


def _layers(side, default, config, policy):
    """The layers of one side, created by `encoder_layer` or `decoder_layer`."""
    make = config[f"{side}_layer"] or default
    settings = {name: config[name] for name in OF_LAYERS}
    if side == "decoder" and config["decoder_d_ff"] is not None:
        settings["d_ff"] = config["decoder_d_ff"]
    return [
        make(**settings, name=f"{side}_layer_{i}", dtype=policy)
        for i in range(config[f"num_{side}_layers"])
    ]


class _Bias(keras.layers.Layer):
    """Adds a trained bias to each logit; saved files use the name of this class.

    Call arguments:
        inputs: float32 tensor (B, T, V).
    """

    def build(self, input_shape):
        self.bias = self.add_weight(
            name="bias", shape=(input_shape[-1],), initializer="zeros"
        )

    def call(self, inputs):
        return inputs + self.bias
