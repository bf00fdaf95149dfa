"""Smoothed cross-entropy per real token of the global batch."""

import warnings

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_probability
from keras_vanilla._readable import readable
from keras_vanilla._types import Tensor
from keras_vanilla.distribution.steps.loss_share import replica_share, token_weights


@keras.saving.register_keras_serializable(package="keras_vanilla")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy against the label mixed with a uniform distribution.

        q = (1 - e) onehot(label) + e / V
        loss = -sum_v q_v log softmax(logits)_v
             = logsumexp(logits) - (1 - e) logits[label] - e mean(logits)

    averaged over tokens by their weights: the sum of the weighted losses divided by the
    sum of the weights (Keras's `reduction="mean_with_sample_weight"`). Weights are
    usually the 0/1 mask that `batches` creates; without weights, every label except
    `pad_id` has weight 1. A weight per pair applies to all its labels except `pad_id`.
    On several devices, and in a `Transformer`'s micro-batches, the mean is taken over
    the global batch.

    Args:
        label_smoothing: float in [0, 1). e in the formula; 0.1 in the paper.
        pad_id: int. Label that is ignored if no weights are given; -1 means none.
        name: str.
    Call arguments:
        y_true: int tensor (B, T) of labels.
        y_pred: float tensor (B, T, V) of logits.
        sample_weight: non-negative tensor (B, T), or (B,) per pair, or None.
    Returns:
        Float32 scalar.
    Raises:
        ValueError: if an argument is out of range, weights have the wrong shape, or a
            label with a weight is not an id. Inside a graph, where labels cannot be
            read, the loss is NaN instead.
    Example:
        >>> loss = SmoothedCrossentropy(label_smoothing=0.0)
        >>> logits, labels = np.zeros((1, 2, 4), "float32"), np.array([[3, 0]])
        >>> round(float(loss(labels, logits)), 4)  # log 4: the second label is padding
        1.3863

    Source: Vaswani et al. 2017, section 5.4; Szegedy et al. 2016, section 7.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        pad_id: int = 0,
        name: str = "smoothed_crossentropy",
    ):
        super().__init__(
            name=name, reduction="mean_with_sample_weight", dtype="float32"
        )
        self.label_smoothing = check_probability("label_smoothing", label_smoothing)
        self.pad_id = check_integer("pad_id", pad_id, -1)

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        weights = self.token_weights(y_true, sample_weight)
        weights = nan_at_wrong_labels(weights, y_true, y_pred.shape[-1])
        loss = super().__call__(y_true, y_pred, weights)
        return loss * replica_share(weights)

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true, "int32")
        labels = ops.clip(labels, 0, y_pred.shape[-1] - 1)  # others are ignored
        return smoothed_crossentropy(labels, y_pred, self.label_smoothing)

    def token_weights(
        self, labels: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """The weight of each token, float32 (B, T), for labels (B, T)."""
        return token_weights(labels, sample_weight, self.pad_id)

    def get_config(self) -> dict:
        return {
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict) -> "SmoothedCrossentropy":
        config = dict(config)
        micro_batches = config.pop("micro_batches", 1)  # in versions up to 0.5.0
        if micro_batches > 1:
            warnings.warn(
                f"This loss was saved with micro_batches={micro_batches}, which now "
                "belongs to the model: `model.compile(..., micro_batches="
                f"{micro_batches})`.",
                stacklevel=2,
            )
        return cls(**config)


class FormerLoss:
    """Loads a loss that was removed in 0.8.0 as the smoothed cross-entropy alone."""

    @classmethod
    def from_config(cls, config: dict) -> SmoothedCrossentropy:
        """Creates the loss, with a warning."""
        warnings.warn(
            f"The loss {config['name']} was removed in 0.8.0 and is now the smoothed "
            "cross-entropy alone; keras_vanilla 0.7.0 trains with it.",
            stacklevel=2,
        )
        settings = {name: config[name] for name in ("label_smoothing", "pad_id")}
        return SmoothedCrossentropy(**settings)


def nan_at_wrong_labels(weights: Tensor, labels: Tensor, size: int) -> Tensor:
    """Returns weights that are NaN where a label with a weight is not an id.

    Without this, -1 would be treated as the last id.

    Args:
        weights: float32 tensor (B, T).
        labels: int tensor (B, T).
        size: int. Number of ids.
    Raises:
        ValueError: if an eager label is not an id.
    """
    labels = ops.cast(labels, "int32")
    wrong = ((labels < 0) | (labels >= size)) & (weights > 0)
    values = readable(wrong)
    if values is not None and values.any():
        label = int(ops.convert_to_numpy(labels)[values][0])
        raise ValueError(
            f"Labels must be ids from 0 to {size - 1} where they count; give others "
            f"the weight 0. Received: {label}"
        )
    return ops.where(wrong, float("nan"), weights)


def smoothed_crossentropy(
    labels: Tensor, logits: Tensor, label_smoothing: float
) -> Tensor:
    """The loss of each token, with an explicit gradient.

    No one-hot tensor (B, T, V) is created. The only tensor of that size that is kept
    are the exponentials of the logits, from which the gradient is computed in place.
    Automatic differentiation of the same formula needs several times the memory.

    Args:
        labels: int tensor (B, T).
        logits: float32 tensor (B, T, V).
        label_smoothing: float. e in `SmoothedCrossentropy`.
    Returns:
        Float32 tensor (B, T).
    """
    shape = ops.shape(logits)
    size = logits.shape[-1]
    confidence, share = 1.0 - label_smoothing, label_smoothing / size

    @ops.custom_gradient
    def per_token(z):  # (P, V) -> (P,), P = B * T
        powers, sums, highest = exponentials(z)
        total, chosen = highest + ops.log(sums), logits_of(labels, z)
        mean = ops.mean(z, axis=-1)
        losses = total - confidence * chosen - label_smoothing * mean

        def grad(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            scale = ops.expand_dims(upstream / sums, 1)
            smooth = powers * scale - ops.expand_dims(upstream * share, 1)
            at_label = (ops.exp(chosen - total) - share - confidence) * upstream
            # Not a scatter, because TensorFlow's deterministic one may run on the host.
            tokens = ops.reshape(labels, (-1, 1))
            is_label = ops.equal(ops.arange(size, dtype="int32"), tokens)
            return ops.where(is_label, ops.expand_dims(at_label, 1), smooth)

        return losses, grad

    losses = per_token(ops.reshape(logits, (-1, size)))
    return ops.reshape(losses, shape[:2])


def exponentials(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The terms of softmax and log-softmax, for the loss and the metrics.

        softmax(z) = powers / sums        log softmax(z) = z - highest - log(sums)

    Losses and metrics call this with the same logits in the same shape, so that a
    compiled step computes it once.

    Args:
        z: float32 tensor (P, V) of logits.
    Returns:
        Float32 tensors: exp(z - highest) (P, V), their sums (P,), and the highest (P,).
    """
    highest = ops.max(z, axis=-1, keepdims=True)
    powers = ops.exp(z - highest)
    return powers, ops.sum(powers, axis=-1), ops.squeeze(highest, -1)


def logits_of(labels: Tensor, z: Tensor) -> Tensor:
    """The logit (P,) of each label, for labels (B, T) and logits z (P, V)."""
    labels = ops.reshape(labels, (-1, 1))
    return ops.squeeze(ops.take_along_axis(z, labels, axis=-1), -1)
