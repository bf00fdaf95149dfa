"""The smoothed cross-entropy, per real token of the global batch."""

import keras
from keras import ops

from keras_vanilla.distribution.steps import steps as step


@keras.saving.register_keras_serializable(package="keras_vanilla")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy against the label mixed with a uniform distribution.

        q = (1 - e) onehot(label) + e / V
        loss = -sum_v q_v log softmax(logits)_v
             = logsumexp(logits) - (1 - e) logits[label] - e mean(logits)

    summed over all tokens with their weights. The weights are `mask / sum(mask)` over
    the global batch, as `batches` makes them: then the sum is the mean over real
    tokens, on one device and on many. Weights are needed, and weights that sum to more
    than 1 (a 0/1 mask) are refused wherever their values can be read.

    Args:
        label_smoothing: float in [0, 1). e; the paper's is 0.1.
        micro_batches: int. Parts of each batch that a `Transformer` trains on one after
            the other before it updates its weights once: the same gradient in less
            memory. Another model trains on whole batches.
    Call arguments:
        y_true: int tensor (B, T) of labels.
        y_pred: float tensor (B, T, V) of logits.
        sample_weight: float tensor (B, T).
    Returns:
        Float32 scalar.
    Raises:
        ValueError: if an argument is out of range, or the weights are missing or sum to
            more than 1.
    Example:
        >>> loss = SmoothedCrossentropy(label_smoothing=0.0)
        >>> logits, weights = np.zeros((1, 2, 4), "float32"), np.array([[1.0, 0.0]])
        >>> round(float(loss(np.array([[3, 0]]), logits, weights)), 4)  # log 4
        1.3863

    Source: Vaswani et al. 2017, section 5.4; Szegedy et al. 2016, section 7.
    """

    def __init__(
        self, label_smoothing=0.1, micro_batches=1, name="smoothed_crossentropy"
    ):
        super().__init__(name=name, reduction="sum", dtype="float32")
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                "`label_smoothing` must be at least 0 and below 1. "
                f"Received: {label_smoothing}"
            )
        if micro_batches < 1:
            raise ValueError(
                f"`micro_batches` must be at least 1. Received: {micro_batches}"
            )
        self.label_smoothing = label_smoothing
        self.micro_batches = micro_batches

    def train_step(self, model, *state_and_data):
        """What `Transformer.train_step` does when it is compiled with this loss."""
        return step.train_step(model, self.micro_batches, *state_and_data)

    def test_step(self, model, *state_and_data):
        """What `Transformer.test_step` does when it is compiled with this loss."""
        return step.test_step(model, *state_and_data)

    def __call__(self, y_true, y_pred, sample_weight=None):
        step.refuse_unnormalised(sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true, "int32")
        return smoothed_crossentropy(labels, y_pred, self.label_smoothing)

    def get_config(self):
        return {
            "label_smoothing": self.label_smoothing,
            "micro_batches": self.micro_batches,
            "name": self.name,
        }


def smoothed_crossentropy(labels, logits, label_smoothing):
    """The loss of each token, with its gradient written out.

    No (B, T, V) one-hot is made, and of the logits' size only the softmax is kept:
    left to automatic differentiation the same formula needs several times the memory.

    Args:
        labels: int tensor (B, T).
        logits: float32 tensor (B, T, V).
        label_smoothing: float. e above.
    Returns:
        Float32 tensor (B, T).
    """
    shape = ops.shape(logits)
    size = logits.shape[-1]
    tokens = ops.reshape(labels, (-1, 1))  # (B, T) -> (P, 1), P = B * T
    confidence, share = 1.0 - label_smoothing, label_smoothing / size

    @ops.custom_gradient
    def per_token(z):  # (P, V) -> (P,)
        total = ops.logsumexp(z, axis=-1)
        chosen = ops.squeeze(ops.take_along_axis(z, tokens, axis=-1), -1)
        mean = ops.mean(z, axis=-1)
        losses = total - confidence * chosen - label_smoothing * mean

        def grad(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            smooth = ops.exp(z - ops.expand_dims(total, 1)) - share  # softmax - e / V
            places = ops.stack(
                [ops.arange(ops.shape(z)[0], dtype="int32"), tokens[:, 0]], axis=1
            )
            at_label = ops.exp(chosen - total) - share - confidence
            gradient = ops.scatter_update(smooth, places, at_label)
            return gradient * ops.expand_dims(upstream, 1)

        return losses, grad

    losses = per_token(ops.reshape(logits, (-1, size)))
    return ops.reshape(losses, shape[:2])
