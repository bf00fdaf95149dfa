"""Metrics per real token: exact in `fit`, `evaluate` and on any number of devices."""

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.distribution import keras_internals
from keras_vanilla.training.loss import exponentials, logits_of


class _TokenMean(keras.metrics.Metric):
    """The mean of a value over all real tokens seen, kept as a sum and a count.

    Tokens are real where the label is not `pad_id`; sample weights are ignored.
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
        labels = ops.reshape(ops.cast(y_true, "int32"), (-1,))
        logits = ops.reshape(ops.cast(y_pred, "float32"), (-1, y_pred.shape[-1]))
        real = ops.cast(ops.not_equal(labels, self.pad_id), "float32")
        values = self.values(labels, logits)
        self.total.assign_add(ops.sum(values * real))
        self.count.assign_add(ops.sum(real))

    def result(self):
        return ops.divide_no_nan(self.total, self.count)

    def get_config(self):
        return {"name": self.name, "pad_id": self.pad_id}


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TokenCrossentropy(_TokenMean):
    """The mean of -log p(label) over real tokens, in nats, without smoothing.

    Args:
        pad_id: int. Labels that do not count.
    Source: the perplexity's exponent of Vaswani et al. 2017, table 3.
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
        pad_id: int. Labels that do not count.
    Source: Vaswani et al. 2017, table 3.
    """

    def __init__(self, name: str = "perplexity", pad_id: int = 0):
        super().__init__(name, pad_id)

    def result(self):
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TokenAccuracy(_TokenMean):
    """The share of real tokens whose label has the highest logit.

    Where two pieces have the highest, as in bfloat16, either is right.

    Args:
        pad_id: int. Labels that do not count.
    """

    direction = "up"

    def __init__(self, name: str = "token_accuracy", pad_id: int = 0):
        super().__init__(name, pad_id)

    def values(self, labels: Tensor, logits: Tensor) -> Tensor:
        _, _, highest = exponentials(logits)
        return ops.cast(ops.equal(logits_of(labels, logits), highest), "float32")
