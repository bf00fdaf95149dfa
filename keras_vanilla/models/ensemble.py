"""Several Transformers as one model that averages their probabilities."""

from collections.abc import Sequence
from typing import Any, NoReturn

import keras
from keras import ops

from keras_vanilla._checks import SavedAsKeras
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.cache import Cache
from keras_vanilla.models.copies import is_plain
from keras_vanilla.models.transformer import Transformer

SAME = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "pad_id",
    "start_id",
    "end_id",
    "source_end",
    "forbidden_ids",
)


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Ensemble(SavedAsKeras, keras.Model):
    """Averages the next-token probabilities of several Transformers.

        P(token) = (P_1(token) + ... + P_n(token)) / n

    All searches accept it in place of a Transformer, and
    `Translator(tokenizer, Ensemble(...))` can translate and be saved. The models are
    trained separately. The logits are the logarithms of the mean probabilities.

    Args:
        models: list of Transformer, of any sizes.
        name: str or None.
    Call arguments:
        inputs: dict of int tensors "source_ids" (B, S) and "target_ids" (B, T).
    Returns:
        Float32 logits (B, T, V).
    Raises:
        TypeError: if one of `models` is not a Transformer.
        ValueError: if `models` is empty, or the models differ in vocabulary sizes,
            special ids, `source_end` or `forbidden_ids`.
    Example:
        models = [Translator.load(path).model for path in ("a.keras", "b.keras")]
        translator = Translator(tokenizer, Ensemble(models))
        translator.translate(["Guten Morgen."], beam_size=4)
    """

    def __init__(self, models: Sequence[Transformer], name: str | None = None):
        super().__init__(name=name)
        _check(models)
        self.models = list(models)
        for attribute in SAME:
            setattr(self, attribute, getattr(models[0], attribute))
        self.max_length = min(model.max_length for model in models)
        self.built = True

    def call(self, inputs, training=None):
        return _log_of_mean([model(inputs, training=training) for model in self.models])

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Concatenates the memories of all models: (B, S, D_1 + ... + D_n), and a mask.

        Args:
            source_ids: int tensor (B, S).
        Raises:
            ValueError: if an id of an eager tensor is outside the vocabulary.
        """
        memories, masks = zip(
            *(model.encode(source_ids) for model in self.models), strict=True
        )
        memories = [ops.cast(memory, "float32") for memory in memories]
        return ops.concatenate(memories, axis=-1), masks[0]

    noted = ()  # this and the next property: see `SearchedModel`
    while_loop = staticmethod(ops.while_loop)

    @property
    def shares_beams(self) -> bool:
        """True if beam search keeps one cache for all beams of a row."""
        return all(model.shares_beams for model in self.models)

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor | None,
        max_length: Tensor | int | None,
        beam_size: int | None = None,
    ) -> Cache:
        """Creates the cache for `decode_step`, which holds the caches of all models."""
        caches, start = [], 0
        for model in self.models:
            part = memory[..., start : start + model.d_model]
            start += model.d_model
            part = ops.cast(part, model.compute_dtype)
            caches.append(model.start_cache(part, memory_mask, max_length, beam_size))
        return _together(caches)

    def decode_step(
        self, ids: Tensor, index: Tensor | int, cache: Cache
    ) -> tuple[Tensor, Cache]:
        """Logits of the next token, and the cache with this position in it.

        Args:
            ids: int tensor (B,), or (B, K) for a cache of K hypotheses.
            index: int or int32 scalar. 0 for the start token.
            cache: Cache from `start_cache` or from the previous step.
        Raises:
            ValueError: as `Transformer.decode_step`.
        """
        parts = zip(cache.past, cache.fixed, strict=True)
        logits, caches = zip(
            *(
                model.decode_step(ids, index, cache._replace(past=past, fixed=fixed))
                for model, (past, fixed) in zip(self.models, parts, strict=True)
            ),
            strict=True,
        )
        return _log_of_mean(logits), _together(caches)

    def attention_weights(self, inputs: dict) -> NoReturn:
        """Not available; call it on one of `models`."""
        raise NotImplementedError(
            "An Ensemble has no attention of its own: look at one of its `models`."
        )

    @property
    def is_plain(self) -> bool:
        """True if no layer is quantised and none has LoRA."""
        return is_plain(self)

    @property
    def fake_quantization(self) -> str | None:
        """Mode of the first model with fake quantisation; see `fake_quantize`."""
        modes = (model.fake_quantization for model in self.models)
        return next((mode for mode in modes if mode is not None), None)

    def copy(self, weights: list | None = None, dtype: Any = None) -> "Ensemble":
        """A new, uncompiled model that computes the same; see `Transformer.copy`."""
        copy = Ensemble([model.copy(dtype=dtype) for model in self.models], self.name)
        if weights is not None:
            copy.set_weights(weights)
        return copy

    def get_config(self) -> dict:
        models = [keras.saving.serialize_keras_object(model) for model in self.models]
        return {"models": models, "name": self.name}

    @classmethod
    def from_config(cls, config: dict) -> "Ensemble":
        models = map(keras.saving.deserialize_keras_object, config["models"])
        return cls(list(models), config["name"])


def _together(caches):
    """Merges several caches into one that holds `past` and `fixed` of each."""
    past, fixed = zip(*((cache.past, cache.fixed) for cache in caches), strict=True)
    return caches[0]._replace(past=past, fixed=fixed)


def _log_of_mean(logits):
    """The logarithm of the mean of the probabilities of several logits (..., V)."""
    log_probs = ops.stack([ops.log_softmax(ops.cast(x, "float32")) for x in logits])
    largest = ops.max(log_probs, axis=0)  # -inf for a token that is forbidden
    largest = ops.where(ops.isinf(largest), 0.0, largest)
    total = ops.sum(ops.exp(log_probs - largest), axis=0)
    return ops.log(total / len(logits)) + largest


def _check(models):
    if not models:
        raise ValueError("`models` must have at least one Transformer. Received: []")
    for model in models:
        if not isinstance(model, Transformer):
            raise TypeError(
                "`models` must be a list of Transformer. Received: a "
                f"{type(model).__name__} in it"
            )
        for attribute in SAME:
            first, other = getattr(models[0], attribute), getattr(model, attribute)
            if other != first:
                raise ValueError(
                    f"The models of an Ensemble must agree in `{attribute}`. "
                    f"Received: {first} and {other}"
                )
