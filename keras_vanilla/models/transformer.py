"""The Transformer, built with Keras's functional API."""

import inspect
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import keras
import numpy as np
from keras import ops

from keras_vanilla._checks import (
    CheckedArguments,
    SavedAsKeras,
    check_ids,
    check_integer,
)
from keras_vanilla._readable import readable
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.cache import Cache
from keras_vanilla.distribution import steps
from keras_vanilla.distribution.steps.loss_share import token_weights
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)
from keras_vanilla.layers.layer import refuse_quantised
from keras_vanilla.models.assembly import MAKERS, checked, encoder_and_decoder
from keras_vanilla.models.checked_data import CheckedData, in_one_sentence
from keras_vanilla.models.fit_arguments import (
    by_name,
    refuse_fixed_learning_rate,
    refuse_probabilities,
)
from keras_vanilla.models.presets import preset_sizes
from keras_vanilla.models.registry import registered_name


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Transformer(CheckedArguments, SavedAsKeras, keras.Model):
    """Maps a source sequence and the target so far to logits of each next token.

        memory = Encoder(embed(source) + PE)
        logits = Decoder(embed(target) + PE, memory) E^T

    This is a functional-API model. By default one table E is the source embedding, the
    target embedding and the output projection (section 3.4). Padding (`pad_id`) never
    changes a result; the first target position always counts as a token.

    Args:
        source_vocabulary_size: int. Number of source ids.
        target_vocabulary_size: int or None. Number of target ids (V); None means the
            same as for the source.
        d_model: int. Width (D). Must be even and divisible by `num_heads`.
        num_heads: int. Number of heads of each attention (N).
        d_ff: int. Inner width of the feed-forward networks (F).
        decoder_d_ff: int or None. Inner width in the decoder; None means `d_ff`.
        num_encoder_layers: int. From 1 to 1000.
        num_decoder_layers: int. From 1 to 1000.
        dropout: float. Rate on embedding + position and on each sub-layer's output.
        attention_dropout: float or None. On attention weights; None means `dropout`.
        activation: name of the function inside the feed-forward networks.
        normalize_first: bool. Pre-norm.
        final_norm: bool or None. Add a LayerNorm at the end of each stack; None means
            the value of `normalize_first`.
        layer_norm_epsilon: float.
        position_layout: "interleaved" (as in the paper), "concatenated" (as in Hugging
            Face's Marian models) or "tensor2tensor" (as in Marian itself).
        scale_embeddings: bool. Multiply embeddings by sqrt(d_model).
        share_embeddings: bool. Use one table for source and target.
        tie_output: bool. Use the target's table as output projection; False creates a
            separate table.
        output_bias: bool. Add a bias to the logits.
        zero_pad: bool. Use a zero vector for `pad_id`, regardless of the table; with
            `start_id=pad_id` the target starts with a vector of zeros, as in Marian.
        source_end: bool. Attend to the `end_id` of a source; False masks it like a pad,
            for models that were trained on sources without an end.
        forbidden_ids: list of ints. Ids that searches never produce: their logits are
            -inf in `decode_step`, so the softmax excludes them.
        encoder_layer: class or function, registered with Keras, that creates the layers
            of the encoder; None means `EncoderLayer`. It is called with the arguments
            `num_heads`, `d_ff`, `dropout`, `attention_dropout`, `activation`,
            `normalize_first`, `layer_norm_epsilon`, `name` and `dtype`.
        decoder_layer: the same for the decoder; None means `DecoderLayer`. Searches
            need its `start_cache`, `step` and `PAST`, as `DecoderLayer` has them.
        pad_id: int. The padding id.
        start_id: int. The first id of every target.
        end_id: int. The id after the last token of a sequence.
        max_length: int. Largest length of a source and of a search's output.
        embeddings: array (V, D) or None. Initial value of the table; with separate
            tables a pair of arrays. Not kept in the config.
        dtype: precision policy of every layer. None means Keras's global policy.
    Call arguments:
        inputs: dict of int tensors "source_ids" (B, S) and "target_ids" (B, T).
    Returns:
        Float32 logits (B, T, V).
    Raises:
        ValueError: if d_model is odd or not divisible by `num_heads`, a size is not
            positive, shared tables would differ in size, or, for eager tensors, an id
            is outside its vocabulary or a row has more than `max_length` tokens.
    Example:
        >>> model = Transformer.from_preset("tiny", source_vocabulary_size=11)
        >>> source, target = np.array([[5, 3]]), np.array([[2, 7, 9]])
        >>> tuple(model({"source_ids": source, "target_ids": target}).shape)
        (1, 3, 11)

    Source: Vaswani et al. 2017, section 3; sizes from table 3.
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        *,
        d_model: int = 512,
        num_heads: int = 8,
        d_ff: int = 2048,
        decoder_d_ff: int | None = None,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        activation: str = "relu",
        normalize_first: bool = False,
        final_norm: bool | None = None,
        layer_norm_epsilon: float = 1e-5,
        position_layout: str = "interleaved",
        scale_embeddings: bool = True,
        share_embeddings: bool = True,
        tie_output: bool = True,
        output_bias: bool = False,
        zero_pad: bool = False,
        source_end: bool = True,
        forbidden_ids: Sequence[int] = (),
        encoder_layer: Callable | str | None = None,
        decoder_layer: Callable | str | None = None,
        pad_id: int = 0,
        start_id: int = 2,
        end_id: int = 3,
        max_length: int = 512,
        embeddings: Any = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs,
    ):
        arguments = {name: value for name, value in locals().items() if name in CONFIG}
        config = checked(arguments)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        refuse_quantised(policy)

        # Layers
        encoder, decoder = encoder_and_decoder(config, embeddings, policy)

        # Computation
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        memory, memory_mask = encoder(source_ids)
        super().__init__(
            inputs={"source_ids": source_ids, "target_ids": target_ids},
            outputs=decoder(target_ids, memory, memory_mask),
            **kwargs,
        )

        # Configuration
        for name, value in config.items():
            setattr(self, name, value)
        self._is_forbidden = np.isin(
            np.arange(self.target_vocabulary_size), self.forbidden_ids
        )
        self.encoder, self.decoder = encoder, decoder
        self.dtype_policy = policy
        self.micro_batches = 1
        self.fake_quantization = None  # `fake_quantize` sets it

    @classmethod
    def from_preset(cls, name: str, **overrides) -> "Transformer":
        """Creates an untrained Transformer of a named size; no weights are loaded.

        Args:
            name: "tiny", "small", "base" or "big"; for phones "phone", "phone-small"
                or "phone-tiny".
            overrides: arguments of the constructor; `source_vocabulary_size` is
                required.
        Raises:
            ValueError: if the preset does not exist.
        """
        return cls(**{**preset_sizes(name), **overrides})

    # Layers have the names of these attributes in saved files.

    @property
    def source_embedding(self) -> TokenEmbedding:
        """Maps source ids to vectors."""
        return self.encoder.embedding

    @property
    def target_embedding(self) -> TokenEmbedding:
        """Maps target ids to vectors."""
        return self.decoder.embedding

    @property
    def output_projection(self) -> TokenEmbedding | None:
        """The table of the output projection; None if it is the target's table."""
        return None if self.tie_output else self.decoder.output

    @property
    def positions(self) -> PositionalEncoding:
        """The layer that adds positions in encoder and decoder."""
        return self.encoder.positions

    @property
    def encoder_layers(self) -> list[EncoderLayer]:
        """The layers of the encoder, from first to last."""
        return self.encoder.layers

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The layers of the decoder, from first to last."""
        return self.decoder.layers

    @property
    def encoder_norm(self) -> keras.layers.Layer | None:
        """The normalisation at the end of the encoder, or None."""
        return self.encoder.norm

    @property
    def decoder_norm(self) -> keras.layers.Layer | None:
        """The normalisation at the end of the decoder, or None."""
        return self.decoder.norm

    @property
    def logits_bias(self) -> keras.layers.Layer | None:
        """The layer that adds a bias to the logits; None without `output_bias`."""
        return self.decoder.bias

    def call(self, inputs, training=None, mask=None):
        if not isinstance(inputs, dict):
            raise ValueError(
                'A Transformer takes a dict {"source_ids": ..., "target_ids": ...}. '
                f"Received: a {type(inputs).__name__}"
            )
        self._check_rows(inputs["source_ids"], "source")
        self._check_rows(inputs["target_ids"], "target")
        return super().call(inputs, training=training, mask=mask)

    def compile(self, *args, micro_batches: int = 1, **kwargs) -> None:
        """Configures the model for training.

        Args:
            args: as for `keras.Model.compile`.
            micro_batches: int. Number of parts into which each batch is split. They are
                computed one after the other before a single update: the same gradient
                in less memory. With more than 1, `keras.models.clone_model` fails,
                because it creates a plain Keras model; use `copy` instead.
            kwargs: as for `keras.Model.compile`.
        Raises:
            ValueError: if `micro_batches` is below 1.
        """
        self.micro_batches = check_integer("micro_batches", micro_batches, 1)
        super().compile(*args, **kwargs)

    def get_compile_config(self) -> dict | None:
        config = super().get_compile_config()
        if config and self.micro_batches > 1:  # `clone_model` creates a plain model
            config["micro_batches"] = self.micro_batches
        return config

    def compile_from_config(self, config: dict) -> None:
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(self, x: Any = None, *args, **kwargs) -> keras.callbacks.History:
        """Trains the model, as `keras.Model.fit` does.

        Args:
            x: as for `keras.Model.fit`, or the `Batches` that `batches` returns.
            args: as for `keras.Model.fit`.
            kwargs: as for `keras.Model.fit`. `validation_data` may be `Batches`;
                infinite `Batches` set `steps_per_epoch` and `validation_steps`;
                `sample_weight` is (B, T), one per label, or (B,), one per pair, which
                applies to all its labels except padding.
        Raises:
            ValueError: if `CheckedData` refuses the data, another dataset is infinite
                and no number of steps is given, there is a `class_weight`, the loss
                expects probabilities, or a callback sets a learning rate that follows
                a schedule.
        """
        arguments = by_name(keras.Model.fit, (x, *args), kwargs)
        if self.compiled:
            refuse_probabilities(self.loss, self.pad_id)
            refuse_fixed_learning_rate(arguments.get("callbacks"), self.optimizer)
        steps.build_optimizer(self)
        with steps.replica_overrides(self), in_one_sentence(self):
            return super().fit(**CheckedData(self).of_arguments(arguments))

    def evaluate(self, x: Any = None, *args, **kwargs) -> Any:
        """Computes the loss and metrics, as `keras.Model.evaluate` does.

        Args:
            x: as for `keras.Model.evaluate`, or the `Batches` that `batches` returns.
            args: as for `keras.Model.evaluate`.
            kwargs: as for `keras.Model.evaluate`; infinite `Batches` set `steps`, and
                `sample_weight` is as for `fit`.
        Raises:
            ValueError: if `CheckedData` refuses the data, or another dataset is
                infinite and no number of steps is given.
        """
        arguments = by_name(keras.Model.evaluate, (x, *args), kwargs)
        with steps.replica_overrides(self), in_one_sentence(self):
            # Keras sets this where `fit` has already checked the arguments.
            if not arguments.get("_use_cached_eval_dataset"):
                arguments = CheckedData(self).of_arguments(arguments)
            return super().evaluate(**arguments)

    def predict(self, x: Any, *args, **kwargs) -> Any:
        """Computes logits, as `keras.Model.predict` does.

        Args:
            x: as for `keras.Model.predict`.
            args: as for `keras.Model.predict`.
            kwargs: as for `keras.Model.predict`.
        Raises:
            ValueError: if `CheckedData` refuses the ids.
        """
        arguments = by_name(keras.Model.predict, (x, *args), kwargs)
        with in_one_sentence(self):
            return super().predict(**CheckedData(self).of_arguments(arguments))

    def train_on_batch(self, *args, **kwargs) -> Any:
        """Trains on one batch, as `keras.Model.train_on_batch` does.

        Args:
            args: as for `keras.Model.train_on_batch`.
            kwargs: as for `keras.Model.train_on_batch`; `sample_weight` is as for
                `fit`.
        Raises:
            ValueError: if `CheckedData` refuses the data, or there is a `class_weight`.
        """
        arguments = by_name(keras.Model.train_on_batch, args, kwargs)
        steps.build_optimizer(self)
        return super().train_on_batch(**CheckedData(self).of_arguments(arguments))

    def test_on_batch(self, *args, **kwargs) -> Any:
        """Evaluates one batch, as `keras.Model.test_on_batch` does."""
        arguments = by_name(keras.Model.test_on_batch, args, kwargs)
        return super().test_on_batch(**CheckedData(self).of_arguments(arguments))

    def train_step(self, *state_and_data) -> Any:
        """Keras's step, or one with micro-batches or on several devices."""
        *state, data = state_and_data
        data = self._completed(data)
        return steps.train_step(self, self.micro_batches, *state, data)

    def test_step(self, *state_and_data) -> Any:
        """Keras's step, or one on several devices."""
        *state, data = state_and_data
        return steps.test_step(self, *state, self._completed(data))

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Keras's loss, of weights per label; before the first step, too."""
        x, y, sample_weight = self._completed((x, y, sample_weight))
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict:
        """Keras's metrics, of weights per label."""
        x, y, sample_weight = self._completed((x, y, sample_weight))
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Runs only the encoder, without dropout.

        Args:
            source_ids: int tensor (B, S).
        Returns:
            memory (B, S, D), and its mask: bool (B, S), True = a real token.
        Raises:
            ValueError: if an id of an eager tensor is outside the vocabulary, or a row
                has more than `max_length` tokens.
        """
        self._check_rows(source_ids, "source")
        return self.encoder(ops.convert_to_tensor(source_ids, dtype="int32"))

    def enable_lora(self, rank: int) -> None:
        """Trains only two low-rank matrices beside each query and value kernel.

        Compile the model afterwards. A saved model has no LoRA: the product of the
        matrices is added to its kernels.

        Args:
            rank: int. Rank of the product.
        Raises:
            ValueError: if `rank` is below 1, or LoRA is already enabled.
        Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models".
        """
        check_integer("rank", rank, 1)
        for weight in self.weights:
            weight.trainable = False
        for layer in self._flatten_layers():
            if isinstance(layer, MultiHeadAttention):
                layer.query_dense.enable_lora(rank)
                layer.value_dense.enable_lora(rank)

    @property
    def is_plain(self) -> bool:
        """True if no layer has LoRA."""
        layers = self._flatten_layers()
        return not any(getattr(layer, "lora_enabled", False) for layer in layers)

    def quantize(self, *args, **kwargs) -> NoReturn:
        """Raises an error, because Keras would leave all matrices as they are.

        Raises:
            NotImplementedError: always, with what to use instead.
        """
        raise NotImplementedError(
            "`quantize` of a Transformer was removed in 0.8.0: use "
            "`Translator.save(path, quantize='int8')` for a small file, "
            "`export.tflite(..., quantize='int8')` for a phone, or "
            "`keras_vanilla.models.fake_quantize` to train with the rounding."
        )

    def copy(
        self,
        weights: list | None = None,
        dtype: str | keras.DTypePolicy | None = None,
    ) -> "Transformer":
        """A new, uncompiled model that computes the same, with LoRA merged.

        Args:
            weights: list of arrays as for `set_weights`, or None for this model's.
            dtype: precision policy of the copy, or None for this model's.
        """
        config = self.get_config()
        copy = type(self).from_config({**config, "dtype": dtype or config["dtype"]})
        if weights is None and not self.is_plain:
            # A file merges LoRA into the kernels.
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.weights.h5"
                self.save_weights(path)
                copy.load_weights(path)
        else:
            copy.set_weights(self.get_weights() if weights is None else weights)
        return copy

    noted = ()  # this and `shares_beams`: see `SearchedModel`
    while_loop = staticmethod(ops.while_loop)

    @property
    def shares_beams(self) -> bool:
        """True if beam search keeps one cache for all beams of a row."""
        return self.decoder.shares_beams

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor | None,
        max_length: Tensor | int | None,
        beam_size: int | None = None,
    ) -> Cache:
        """Creates the cache for `decode_step`; see `Decoder.start_cache`."""
        return self.decoder.start_cache(memory, memory_mask, max_length, beam_size)

    def decode_step(
        self,
        ids: Tensor,
        index: Tensor | int,
        cache: Cache,
        attention_weights: dict | None = None,
    ) -> tuple[Tensor, Cache]:
        """Logits of the next token, -inf for `forbidden_ids`; see `Decoder.step`.

        Raises:
            ValueError: if an id of an eager tensor is outside the vocabulary, or
                `index` is a Python int past the end of the cache.
        """
        values = readable(ids)
        if values is not None:
            check_ids("target id", values, self.target_vocabulary_size)
        logits, cache = self.decoder.step(ids, index, cache, attention_weights)
        if self.forbidden_ids:
            logits = ops.where(self._is_forbidden, -np.inf, logits)  # (V,), (B, V)
        return logits, cache

    def attention_weights(self, inputs: dict) -> dict:
        """Returns the weights of every attention, for inspection.

        Args:
            inputs: dict of int arrays "source_ids" (B, S) and "target_ids" (B, T).
        Returns:
            Dict of NumPy arrays: "encoder/0" (B, N, S, S), "decoder/0/self"
            (B, N, T, T), "decoder/0/cross" (B, N, T, S), and so on.
        Raises:
            ValueError: if an id is outside its vocabulary, or a row is too long.
        """
        weights = {}
        ids = {
            side: ops.convert_to_tensor(inputs[f"{side}_ids"], dtype="int32")
            for side in ("source", "target")
        }
        for side, values in ids.items():
            self._check_rows(values, side)
        memory, memory_mask = self.encoder(ids["source"], weights)
        self.decoder(ids["target"], memory, memory_mask, weights)
        return {
            name: ops.convert_to_numpy(ops.cast(value, "float32"))
            for name, value in weights.items()
        }

    def get_config(self) -> dict:
        config = {name: getattr(self, name) for name in CONFIG}
        config["forbidden_ids"] = list(self.forbidden_ids)
        for name in MAKERS:
            config[name] = config[name] and registered_name(config[name])
        return {
            **config,
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    def _completed(self, data):
        """Gives each label the weight of its pair, if weights are per pair."""
        inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
        if weights is None or len(getattr(labels, "shape", ())) != 2:
            return data
        pad_id = getattr(self.loss, "pad_id", self.pad_id)
        return inputs, labels, token_weights(labels, weights, pad_id)

    def _check_rows(self, ids, side):
        values = readable(ids)
        if values is not None:
            CheckedData(self).batch({f"{side}_ids": values})


CONFIG = tuple(
    name
    for name in inspect.signature(Transformer.__init__).parameters
    if name not in ("self", "embeddings", "dtype", "kwargs")
)
