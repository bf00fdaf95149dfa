"""Metrics per real token, exact in `fit`, `evaluate` and on any number of devices."""

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.steps.loss_share import token_weights
from keras_vanilla.training.loss import exponentials, logits_of, nan_at_wrong_labels


class _TokenMean(keras.metrics.Metric):
    """The mean of a value over all real tokens seen, kept as a sum and a count.

    Tokens are real if their label is not `pad_id`. They can have sample weights, (B, T)
    or (B,) per pair, which Keras only passes to `weighted_metrics`.
    """

    direction = "down"

    def __init__(self, name, pad_id=0):
        super().__init__(name=name, dtype="float32")
        keras_internals.set_direction(self, self.direction)
        self.pad_id = pad_id
        self.total = self.add_variable((), initializer="zeros", name="total")
        self.count = self.add_variable((), initializer="zeros", name="count")

    def values(self, labels, logits):
        """The value of each token: ids (P,), logits (P, V) -> float32 (P,)."""
        raise NotImplementedError

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, size = ops.cast(y_true, "int32"), y_pred.shape[-1]
        weights = token_weights(labels, None, self.pad_id)
        if sample_weight is not None:
            weights *= token_weights(labels, sample_weight, self.pad_id)
        weights = ops.reshape(nan_at_wrong_labels(weights, labels, size), (-1,))
        labels = ops.reshape(ops.clip(labels, 0, size - 1), (-1,))
        logits = ops.reshape(ops.cast(y_pred, "float32"), (-1, size))
        values = self.values(labels, logits)
        self.total.assign_add(ops.sum(values * weights))
        self.count.assign_add(ops.sum(weights))

    def result(self):
        return ops.divide_no_nan(self.total, self.count)

    def get_config(self):
        return {"name": self.name, "pad_id": self.pad_id}


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TokenCrossentropy(_TokenMean):
    """The mean of -log p(label) over real tokens, in nats, without smoothing.

    In `weighted_metrics`, all metrics here are means weighted by the sample weights.

    Args:
        pad_id: int. The label that is ignored, such as -100.
    Source: the exponent of the perplexity in Vaswani et al. 2017, table 3.
    """

    def __init__(self, name: str = "token_crossentropy", pad_id: int = 0):
        super().__init__(name, pad_id)

    def values(self, labels: Tensor, logits: Tensor) -> Tensor:
        _, sums, highest = exponentials(logits)
        return highest + ops.log(sums) - logits_of(labels, logits)


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Perplexity(TokenCrossentropy):
    """exp(`TokenCrossentropy`): perplexity per piece.

    Args:
        pad_id: int. The label that is ignored, such as -100.
    Source: Vaswani et al. 2017, table 3.
    """

    def __init__(self, name: str = "perplexity", pad_id: int = 0):
        super().__init__(name, pad_id)

    def result(self):
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TokenAccuracy(_TokenMean):
    """The fraction of real tokens whose label has the highest logit.

    If several pieces share the highest logit, as in bfloat16, each counts as correct.

    Args:
        pad_id: int. The label that is ignored, such as -100.
    """

    direction = "up"

    def __init__(self, name: str = "token_accuracy", pad_id: int = 0):
        super().__init__(name, pad_id)

    def values(self, labels: Tensor, logits: Tensor) -> Tensor:
        _, _, highest = exponentials(logits)
        return ops.cast(ops.equal(logits_of(labels, logits), highest), "float32")
