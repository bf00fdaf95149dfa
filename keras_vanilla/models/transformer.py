"""The Transformer: layers put together with Keras's functional API."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_vanilla.models import stacks


def _preset(d_model, num_heads, d_ff, num_layers, dropout):
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        "d_ff": d_ff,
        "num_encoder_layers": num_layers,
        "num_decoder_layers": num_layers,
        "dropout": dropout,
    }


PRESETS = {
    "tiny": _preset(64, 4, 256, 2, 0.1),
    "small": _preset(256, 8, 1024, 3, 0.1),
    "base": _preset(512, 8, 2048, 6, 0.1),  # table 3 of the paper
    "big": _preset(1024, 16, 4096, 6, 0.3),
}


def check_preset(name):
    """Refuses a name that is no preset's, with the choices, by a ValueError."""
    if name not in PRESETS:
        raise ValueError(
            f"Unknown preset {name!r}. Choose one of: {', '.join(PRESETS)}"
        )


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Transformer(keras.Model):
    """Maps a source sequence and the target so far to logits of each next token.

        memory = Encoder(embed(source) + PE)
        logits = Decoder(embed(target) + PE, memory) E^T

    A functional-API model. By default one table E serves as source embedding, target
    embedding and output projection (section 3.4). Padding (`pad_id`) never changes a
    result; the target's first position is always a token, whatever its id.

    Args:
        source_vocabulary_size: int. Number of source ids.
        target_vocabulary_size: int or None. Number of target ids (V); None means the
            source's.
        d_model: int. Width (D). Even, and divisible by `num_heads`.
        num_heads: int. Heads of each attention (N).
        d_ff: int. Inner width of the feed-forward networks (F).
        num_encoder_layers: int.
        num_decoder_layers: int.
        dropout: float. On embedding + position and on each sub-layer's output.
        attention_dropout: float or None. On attention weights; None means `dropout`.
        activation: name of the function inside the feed-forward networks.
        normalize_first: bool. Pre-norm, with a LayerNorm at the end of each stack.
        layer_norm_epsilon: float.
        position_layout: "interleaved" (the paper's) or "concatenated" (that of Hugging
            Face's Marian models).
        scale_embeddings: bool. Multiply embeddings by sqrt(d_model).
        share_embeddings: bool. One table for source and target. The output projection
            always uses the target's.
        output_bias: bool. Add a bias to the logits.
        pad_id: int.
        start_id: int. The target's first id.
        end_id: int. The id after the last real one.
        max_length: int. Longest source, and longest output of a search.
        embeddings: array (V, D) or None. Initial value of the table; with separate
            tables a pair of arrays. Not kept in the config.
        dtype: precision policy of every layer. None means Keras's global one.
    Call arguments:
        inputs: dict of int tensors "source_ids" (B, S) and "target_ids" (B, T).
    Returns:
        Float32 logits (B, T, V).
    Raises:
        ValueError: if d_model is not divisible by `num_heads` or is odd, a size is not
            positive, shared tables would differ in size, or an id that can be read is
            outside its vocabulary.
    Example:
        >>> model = Transformer.from_preset("tiny", source_vocabulary_size=11)
        >>> source, target = np.array([[5, 3]]), np.array([[2, 7, 9]])
        >>> tuple(model({"source_ids": source, "target_ids": target}).shape)
        (1, 3, 11)

    Source: Vaswani et al. 2017, section 3; sizes from table 3.
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size=None,
        d_model=512,
        num_heads=8,
        d_ff=2048,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dropout=0.1,
        attention_dropout=None,
        activation="relu",
        normalize_first=False,
        layer_norm_epsilon=1e-5,
        position_layout="interleaved",
        scale_embeddings=True,
        share_embeddings=True,
        output_bias=False,
        pad_id=0,
        start_id=2,
        end_id=3,
        max_length=512,
        embeddings=None,
        dtype=None,
        **kwargs,
    ):
        config = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": source_vocabulary_size
            if target_vocabulary_size is None
            else target_vocabulary_size,
            "d_model": d_model,
            "num_heads": num_heads,
            "d_ff": d_ff,
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation": activation,
            "normalize_first": normalize_first,
            "layer_norm_epsilon": layer_norm_epsilon,
            "position_layout": position_layout,
            "scale_embeddings": scale_embeddings,
            "share_embeddings": share_embeddings,
            "output_bias": output_bias,
            "pad_id": pad_id,
            "start_id": start_id,
            "end_id": end_id,
            "max_length": max_length,
        }
        _check_config(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # Layers; a Keras model takes attributes only once it is made
        parts = SimpleNamespace(**config)
        vars(parts).update(stacks.make_embeddings(parts, embeddings, policy))
        vars(parts).update(stacks.make_stacks(parts, policy))

        # Computation
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        memory, memory_mask = stacks.encode(parts, source_ids)
        super().__init__(
            inputs={"source_ids": source_ids, "target_ids": target_ids},
            outputs=stacks.decode(parts, target_ids, memory, memory_mask),
            **kwargs,
        )

        # Configuration
        for name, value in vars(parts).items():
            setattr(self, name, value)
        self._config_names = tuple(config)
        self.dtype_policy = policy

    @classmethod
    def from_preset(cls, name, **overrides):
        """A Transformer of a named size: "tiny", "small", "base" or "big".

        Args:
            name: str.
            overrides: arguments of the constructor; `source_vocabulary_size` is needed.
        Raises:
            ValueError: if there is no such preset.
        """
        check_preset(name)
        return cls(**{**PRESETS[name], **overrides})

    def call(self, inputs, training=None, mask=None):
        self._check_ids(inputs["source_ids"], "source")
        self._check_ids(inputs["target_ids"], "target")
        return super().call(inputs, training=training, mask=mask)

    def train_step(self, *state_and_data):
        """Keras's step, or that of a compiled loss with a step of its own."""
        own = getattr(self.loss, "train_step", None)
        return (
            own(self, *state_and_data) if own else super().train_step(*state_and_data)
        )

    def test_step(self, *state_and_data):
        """Keras's step, or that of a compiled loss with a step of its own."""
        own = getattr(self.loss, "test_step", None)
        return own(self, *state_and_data) if own else super().test_step(*state_and_data)

    def encode(self, source_ids):
        """The encoder alone, without dropout.

        Args:
            source_ids: int tensor (B, S).
        Returns:
            memory (B, S, D), and its mask: bool (B, S), True = a real token.
        Raises:
            ValueError: if an id that can be read is outside the vocabulary.
        """
        self._check_ids(source_ids, "source")
        return stacks.encode(self, ops.convert_to_tensor(source_ids, dtype="int32"))

    def start_cache(self, memory, memory_mask, max_length):
        """What `decode_step` needs of the past, before the first step.

        Args:
            memory: float tensor (B, S, D).
            memory_mask: bool tensor (B, S).
            max_length: int or int32 scalar. Number of positions (L) kept.
        Returns:
            Flat dict of tensors, batch first: "memory_mask" and, for each decoder
            layer i, "decoder/i/self_key" (B, N, L, H) and the like.
        """
        cache = {"memory_mask": memory_mask}
        for i, layer in enumerate(self.decoder_layers):
            for name, value in layer.start_cache(memory, max_length).items():
                cache[f"decoder/{i}/{name}"] = value
        return cache

    def decode_step(self, ids, index, cache):
        """Logits of the next token: the whole decoder at one position.

        Args:
            ids: int tensor (B,). The tokens at position `index`.
            index: int or int32 scalar. 0 for the start token.
            cache: dict from `start_cache`, or from the step before.
        Returns:
            Float32 logits (B, V), and the cache with this position in it.
        Raises:
            ValueError: if an id that can be read is outside the vocabulary, or `index`
                is a Python int past the end of the cache.
        """
        self._check_ids(ids, "target")
        x = self.target_embedding(ops.expand_dims(ids, 1))  # (B,) -> (B, 1, D)
        x = self.positions(x, start_index=index)
        cache = dict(cache)
        for i, layer in enumerate(self.decoder_layers):
            prefix = f"decoder/{i}/"
            past = {
                name.removeprefix(prefix): value
                for name, value in cache.items()
                if name.startswith(prefix)
            }
            x, past = layer.step(x, past, index, cache["memory_mask"])
            cache.update({prefix + name: value for name, value in past.items()})
        return ops.squeeze(stacks.project(self, x), 1), cache  # (B, 1, V) -> (B, V)

    def attention_weights(self, inputs):
        """The weights of every attention, for looking inside.

        Args:
            inputs: dict of int arrays "source_ids" (B, S) and "target_ids" (B, T).
        Returns:
            Dict of NumPy arrays: "encoder/0" (B, N, S, S), "decoder/0/self"
            (B, N, T, T), "decoder/0/cross" (B, N, T, S), and so on.
        Raises:
            ValueError: if an id is outside its vocabulary.
        """
        weights = {}
        ids = {
            side: ops.convert_to_tensor(inputs[f"{side}_ids"], dtype="int32")
            for side in ("source", "target")
        }
        for side, values in ids.items():
            self._check_ids(values, side)
        memory, memory_mask = stacks.encode(self, ids["source"], weights)
        stacks.decode(self, ids["target"], memory, memory_mask, weights)
        return {
            name: ops.convert_to_numpy(ops.cast(value, "float32"))
            for name, value in weights.items()
        }

    def get_config(self):
        config = {name: getattr(self, name) for name in self._config_names}
        return {
            **config,
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    def _check_ids(self, ids, side):
        size = getattr(self, f"{side}_vocabulary_size")
        try:
            ids = ops.convert_to_numpy(ids)
        except (NotImplementedError, TypeError, ValueError):
            return  # symbolic: there is no value to read
        if (
            ids.dtype.kind in "iu"
            and ids.size
            and not 0 <= ids.min() <= ids.max() < size
        ):
            outside = ids[(ids < 0) | (ids >= size)][0]
            raise ValueError(
                f"Each {side} id must be at least 0 and below the {side} vocabulary's "
                f"size, {size}. Received: {outside}"
            )


def _check_config(config):
    for name in (
        "source_vocabulary_size",
        "target_vocabulary_size",
        "d_model",
        "num_heads",
        "d_ff",
        "num_encoder_layers",
        "num_decoder_layers",
        "max_length",
    ):
        if config[name] < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {config[name]}")
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
