"""A training with `ExactResume` on a model that trains in no time."""

import functools

import keras
import numpy as np
import tensorflow as tf
from stopping import Crash

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import ExactResume

WORDS = "one two three four five six seven eight nine ten".split()


@functools.cache
def corpus(pairs):
    """A corpus of pairs of equal length, and its tokenizer."""
    texts = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS[:3]]
    tokenizer = Tokenizer.train(texts, vocabulary_size=280)
    lengths = list(map(len, tokenizer.encode(texts)))
    length = max(set(lengths), key=lengths.count)
    texts = [t for t, n in zip(texts, lengths, strict=True) if n == length][:pairs]
    assert len(texts) == pairs
    return ParallelCorpus(texts, texts[::-1]), tokenizer


def features(inputs, labels, weights):
    """Three numbers of a pair, and two to learn."""
    x = tf.sin(tf.cast(inputs["source_ids"][:, :3], tf.float32))
    return x, tf.matmul(x, tf.ones((3, 2)))


def data(steps=4, change=features, **settings):
    """`Batches` of 5 pairs."""
    pairs, tokenizer = corpus(5 * steps)
    width = 8
    shuffled = batches(
        pairs, tokenizer, 5 * width, widths=[width], max_tokens=8, **settings
    )
    assert shuffled.steps_per_epoch == steps
    return shuffled.map(change)


def validation():
    """A dataset of four batches."""
    inputs = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
    pairs = tf.data.Dataset.from_tensor_slices((inputs, inputs @ np.ones((3, 2))))
    return pairs.batch(5)


def compiled(
    rate=0.05,
    seed=1,
    metrics=("mae",),
    loss="mse",
    dropout=0.4,
    steps=1,
    jit=False,
    penalty=False,
    **settings,
):
    """A model with dropout; `settings` are of Adam."""
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((3,)), keras.layers.Dropout(dropout), keras.layers.Dense(2)]
    if penalty:
        layers.append(keras.layers.ActivityRegularization(l2=0.1))  # by `add_loss`
    model = keras.Sequential(layers)
    model.compile(
        keras.optimizers.Adam(rate, **settings),
        loss,
        metrics=list(metrics),
        steps_per_execution=steps,
        jit_compile=jit,  # which takes longer than the training
    )
    return model


class Stop(keras.callbacks.Callback):
    """Crashes before anything follows this many batches; never after 0."""

    def __init__(self, batches):
        super().__init__()
        self._left, self._is_due = batches, False

    def get_state(self):
        return {}

    def set_state(self, state):
        pass

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        self._is_due = not self._left

    def on_train_batch_begin(self, batch, logs=None):
        self._crash()

    def on_test_batch_begin(self, batch, logs=None):
        self._crash()

    def on_epoch_end(self, epoch, logs=None):
        self._crash()

    def _crash(self):
        if self._is_due:
            raise Crash


def fit(
    model,
    folder,
    callbacks=(),
    crash=0,
    epochs=4,
    every=1,
    allow_changed=(),
    batches=None,
    **settings,
):
    """Trains with `ExactResume`, and crashes after some of this process's batches."""
    resume = ExactResume(folder, [*callbacks, Stop(crash)], every, allow_changed)
    settings = {"verbose": 0, **settings}
    return resume.fit(model, batches or data(), epochs, **settings)
