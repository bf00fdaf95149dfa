"""One step of SGD in micro-batches on the backend of KERAS_BACKEND.

python micro_batch_worker.py OUTPUT.npz
"""

import sys

import keras
import numpy as np
from models import inputs, make_model

from keras_vanilla import training

COUNTS = (1, 3, 9)
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}  # compiles fast
SOURCE_LENGTHS, TARGET_LENGTHS = (5, 3, 2, 6, 4, 1, 7), (4, 7, 3, 1, 5, 2, 6)
RANDOM = np.random.default_rng(0)
PER_PAIR = RANDOM.uniform(0.2, 3.0, 7).astype("float32")
PER_TOKEN = RANDOM.uniform(0.2, 3.0, (7, 7)).astype("float32")
REDUCTIONS = ("sum_over_batch_size", "mean_with_sample_weight", "sum")
# Losses of Keras: reduction, ignored label, weights.
CASES = {
    f"{reduction}, {ignored}, {weights}": (reduction, ignored, weights)
    for reduction in REDUCTIONS
    for ignored, weights in ((0, None), (None, "token"), (0, "pair"))
} | {"a function, 0, None": ("function", 0, None)}


def batch():
    """Seven rows with 1 to 7 tokens, which no count of parts but 1 and 7 divides."""
    feed = inputs(SOURCE_LENGTHS, TARGET_LENGTHS)
    labels = np.pad(feed["target_ids"][:, 1:], ((0, 0), (0, 1)), constant_values=0)
    labels[np.arange(7), np.array(TARGET_LENGTHS) - 1] = 3  # the end of each
    real = labels != 0
    return feed, labels, real.astype("float32")


def without_padding(labels, logits):
    """The values of a loss that is a function, with the mask of Keras's own."""
    return keras.losses.sparse_categorical_crossentropy(
        labels, logits, from_logits=True, ignore_class=0
    )


def loss_of_keras(reduction, ignored):
    if reduction == "function":
        return without_padding
    return keras.losses.SparseCategoricalCrossentropy(
        True, ignore_class=ignored, reduction=reduction
    )


def compiled(micro_batches, loss=None, **overrides):
    model = make_model(**ONE_LAYER, **overrides)
    model.compile(
        keras.optimizers.SGD(1.0),
        loss or training.SmoothedCrossentropy(0.1),
        metrics=[
            training.TokenCrossentropy(),
            training.TokenAccuracy(),
            training.TokenAccuracy("of all", pad_id=-100),
        ],
        jit_compile=keras.backend.backend() == "jax",
        micro_batches=micro_batches,
    )
    return model


def step(micro_batches, loss=None, weights="mask"):
    """(gradient of each weight, what was shown) of one training step."""
    feed, labels, mask = batch()
    given = {"mask": mask, "token": PER_TOKEN, "pair": PER_PAIR, None: None}[weights]
    model = compiled(micro_batches, loss)
    before = model.get_weights()
    shown = model.fit(
        feed, labels, sample_weight=given, batch_size=7, shuffle=False, verbose=0
    ).history
    assert int(model.optimizer.iterations) == 1
    after = model.get_weights()
    gradients = [old - new for old, new in zip(before, after, strict=True)]
    return gradients, {name: value for name, (value,) in shown.items()}


def difference(gradients, expected):
    """Its norm over that of what is expected, over all weights."""

    def norm(arrays):
        squares = [np.square(array.astype("float64")).sum() for array in arrays]
        return np.sqrt(sum(squares))

    pairs = zip(gradients, expected, strict=True)
    return norm([one - other for one, other in pairs]) / norm(expected)


def main(path):
    found = {"backend": keras.backend.backend()}
    runs = {str(count): (count,) for count in COUNTS}
    for name, (reduction, ignored, weights) in CASES.items():
        runs[name] = 3, loss_of_keras(reduction, ignored), weights
    for name, arguments in runs.items():
        gradients, shown = step(*arguments)
        found.update({f"{name}/{i}": value for i, value in enumerate(gradients)})
        found.update({f"{name}/{key}": value for key, value in shown.items()})
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
