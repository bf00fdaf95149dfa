"""Word-level distillation loss: a student learns its teacher's probabilities."""

import contextlib
import hashlib
import warnings
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops

from keras_vanilla._checks import check_share
from keras_vanilla._types import Tensor
from keras_vanilla.training.loss import SmoothedCrossentropy, exponentials


@keras.saving.register_keras_serializable(package="keras_vanilla")
class WordLevelCrossentropy(SmoothedCrossentropy):
    """Smoothed cross-entropy mixed with cross-entropy against a teacher.

        loss = (1 - a) CE(label) - a sum_v softmax(teacher's logits)_v
                                            log softmax(logits)_v

    per token. A `Transformer` passes the inputs of each training step to this loss, and
    the teacher computes its logits from them without dropout. Otherwise, such as in
    `evaluate`, this is only the smoothed cross-entropy.

    Args:
        teacher: Transformer or Ensemble with the same vocabularies as the trained
            model. It is not trained, and not saved with the loss.
        weight: float in [0, 1]. a in the formula.
        label_smoothing: float, as in `SmoothedCrossentropy`.
        pad_id: int, as in `SmoothedCrossentropy`.
        name: str.
    Call arguments:
        y_true: int tensor (B, T) of labels.
        y_pred: float tensor (B, T, V) of logits.
        sample_weight: as in `SmoothedCrossentropy`.
    Returns:
        Float32 scalar.
    Raises:
        ValueError: same as `SmoothedCrossentropy`, and if the teacher has a different
            number of ids.
    Example:
        student.compile("adam", WordLevelCrossentropy(teacher, 0.5))
    Source: Kim and Rush 2016, "Sequence-Level Knowledge Distillation", section 3.1.
    """

    def __init__(
        self,
        teacher: Any,
        weight: float = 0.5,
        label_smoothing: float = 0.1,
        pad_id: int = 0,
        name: str = "word_level_crossentropy",
    ):
        super().__init__(label_smoothing, pad_id, name)
        self.weight = check_share("weight", weight)
        self._teacher, self._inputs = teacher, None
        self._digest = None if teacher is None else weights_digest(teacher)

    @contextlib.contextmanager
    def seeing(self, inputs: dict) -> Iterator[None]:
        """Context manager in which the teacher gets these inputs of the model.

        Args:
            inputs: dict of "source_ids" (B, S) and "target_ids" (B, T).
        """
        self._inputs = inputs
        try:
            yield
        finally:
            self._inputs = None

    def call(self, y_true, y_pred):
        losses = super().call(y_true, y_pred)
        if self._inputs is None or self._teacher is None:
            return losses
        taught = ops.stop_gradient(self._teacher(self._inputs, training=False))
        if taught.shape[-1] != y_pred.shape[-1]:
            raise ValueError(
                "A teacher must have the vocabulary of its student. Received: "
                f"{taught.shape[-1]} and {y_pred.shape[-1]} ids"
            )
        return (1 - self.weight) * losses + self.weight * crossentropy(taught, y_pred)

    def get_config(self) -> dict:
        return {**super().get_config(), "weight": self.weight, "teacher": self._digest}

    @classmethod
    def from_config(cls, config: dict) -> "WordLevelCrossentropy":
        warnings.warn(
            "The loss was saved without its teacher and is now the smoothed "
            "cross-entropy alone: compile the model again to train it further.",
            stacklevel=2,
        )
        return cls(**{**config, "teacher": None})


def weights_digest(model: keras.Model) -> str:
    """SHA-256 of a model's weights."""
    digest = hashlib.sha256()
    for value in model.get_weights():
        digest.update(ops.convert_to_numpy(value).tobytes())
    return digest.hexdigest()


def crossentropy(taught: Tensor, logits: Tensor) -> Tensor:
    """The cross-entropy of each token against a teacher's probabilities.

    As in `smoothed_crossentropy`, the gradient is explicit: softmax(logits) minus the
    teacher's probabilities.

    Args:
        taught: float tensor (B, T, V). The teacher's logits.
        logits: float tensor (B, T, V).
    Returns:
        Float32 tensor (B, T).
    """
    shape, size = ops.shape(logits), logits.shape[-1]
    taught = ops.reshape(ops.cast(taught, "float32"), (-1, size))
    probabilities = ops.softmax(taught, axis=-1)

    @ops.custom_gradient
    def per_token(z):  # (P, V) -> (P,), P = B * T
        powers, sums, highest = exponentials(z)
        losses = highest + ops.log(sums) - ops.sum(probabilities * z, axis=-1)

        def grad(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            softmax = powers / ops.expand_dims(sums, 1)
            return (softmax - probabilities) * ops.expand_dims(upstream, 1)

        return losses, grad

    return ops.reshape(per_token(ops.reshape(logits, (-1, size))), shape[:2])
