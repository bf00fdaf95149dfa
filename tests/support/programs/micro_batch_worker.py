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


def batch():
    """Seven rows with 1 to 7 tokens, which no count of parts but 1 and 7 divides."""
    feed = inputs(SOURCE_LENGTHS, TARGET_LENGTHS)
    labels = np.pad(feed["target_ids"][:, 1:], ((0, 0), (0, 1)), constant_values=0)
    labels[np.arange(7), np.array(TARGET_LENGTHS) - 1] = 3  # the end of each
    real = labels != 0
    return feed, labels, real.astype("float32")


def compiled(micro_batches, **overrides):
    model = make_model(**ONE_LAYER, **overrides)
    model.compile(
        keras.optimizers.SGD(1.0),
        training.SmoothedCrossentropy(0.1),
        metrics=[training.TokenCrossentropy(), training.TokenAccuracy()],
        jit_compile=keras.backend.backend() == "jax",
        micro_batches=micro_batches,
    )
    return model


def step(micro_batches, **overrides):
    """(gradient of each weight, what was shown) of one training step."""
    model = compiled(micro_batches, **overrides)
    before = model.get_weights()
    shown = model.train_on_batch(*batch(), return_dict=True)
    assert int(model.optimizer.iterations) == 1
    after = model.get_weights()
    return [old - new for old, new in zip(before, after, strict=True)], shown


def difference(gradients, expected):
    """Its norm over that of what is expected, over all weights."""

    def norm(arrays):
        squares = [np.square(array.astype("float64")).sum() for array in arrays]
        return np.sqrt(sum(squares))

    pairs = zip(gradients, expected, strict=True)
    return norm([one - other for one, other in pairs]) / norm(expected)


def main(path):
    found = {"backend": keras.backend.backend()}
    for count in COUNTS:
        gradients, shown = step(count)
        found.update({f"{count}/{i}": value for i, value in enumerate(gradients)})
        found.update({f"{count}/{name}": value for name, value in shown.items()})
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
