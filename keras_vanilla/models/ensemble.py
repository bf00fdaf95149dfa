"""Several Transformers as one model: the mean of their probabilities."""

from collections.abc import Sequence
from typing import Any, NoReturn

import keras
from keras import ops

from keras_vanilla._checks import SavedAsKeras
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.searched_model import Cache
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
    """Maps a source sequence and the target so far to logits of each next token.

        P(token) = (P_1(token) + ... + P_n(token)) / n

    It searches as one Transformer does, and `Translator(tokenizer, Ensemble(...))`
    translates and is saved; its models are trained one by one. The logits are the
    logarithms of the mean probabilities.

    Args:
        models: list of Transformer, of any sizes.
        name: str or None.
    Call arguments:
        inputs: dict of int tensors "source_ids" (B, S) and "target_ids" (B, T).
    Returns:
        Float32 logits (B, T, V).
    Raises:
        TypeError: if one of `models` is not a Transformer.
        ValueError: if there are none, or they differ in vocabulary sizes, special ids,
            `source_end` or `forbidden_ids`.
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
        """The memories of all models side by side (B, S, D_1 + ... + D_n), their mask.

        Args:
            source_ids: int tensor (B, S).
        Raises:
            ValueError: if an id that can be read is outside the vocabulary.
        """
        memories, masks = zip(
            *(model.encode(source_ids) for model in self.models), strict=True
        )
        memories = [ops.cast(memory, "float32") for memory in memories]
        return ops.concatenate(memories, axis=-1), masks[0]

    noted = ()  # this and the next as of `SearchedModel`
    while_loop = staticmethod(ops.while_loop)

    @property
    def shares_beams(self) -> bool:
        """Whether beam search keeps one cache for all beams of a row."""
        return all(model.shares_beams for model in self.models)

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor | None,
        max_length: Tensor | int | None,
        beam_size: int | None = None,
    ) -> Cache:
        """What `decode_step` needs of the past: of each model its past and its rest."""
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
            cache: Cache from `start_cache`, or from the step before.
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
        """Not available: use that of one of `models`."""
        raise NotImplementedError(
            "An Ensemble has no attention of its own: look at one of its `models`."
        )

    @property
    def is_plain(self) -> bool:
        """Whether all layers have their usual weights: neither quantised nor LoRA."""
        return is_plain(self)

    @property
    def fake_quantization(self) -> str | None:
        """Of the first of its models that rounds its weights; see `fake_quantize`."""
        found = (model.fake_quantization for model in self.models)
        return next((what for what in found if what is not None), None)

    def copy(self, weights: list | None = None, dtype: Any = None) -> "Ensemble":
        """A new model of the same function, not compiled; see `Transformer.copy`."""
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
    """One cache of several: what they do not have alike side by side."""
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
