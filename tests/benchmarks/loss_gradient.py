"""The loss and its gradient from shared exponentials, beside what it was up to 0.5.0.

Times loss and gradient of both in turns and compares the gradients:

    python tests/benchmarks/loss_gradient.py --tokens 2048 --vocabulary-size 32000

With --memory: the largest memory of the projection, the loss and their gradients, in
copies of the logits.

    python tests/benchmarks/loss_gradient.py --memory --vocabulary-size 24000
"""

import argparse
import resource
import statistics
import time

import numpy as np
import tensorflow as tf

from keras_vanilla.training.loss import smoothed_crossentropy

LABEL_SMOOTHING = 0.1


def scattered(labels, logits):
    """The same loss as `smoothed_crossentropy`, as up to 0.5.0."""
    size = logits.shape[-1]
    share = LABEL_SMOOTHING / size

    @tf.custom_gradient
    def per_token(z):
        total = tf.reduce_logsumexp(z, axis=-1)
        chosen = tf.gather(z, labels[0], batch_dims=1)
        mean = tf.reduce_mean(z, axis=-1)
        losses = total - (1 - LABEL_SMOOTHING) * chosen - LABEL_SMOOTHING * mean

        def grad(upstream):
            smooth = tf.exp(z - total[:, None]) - share
            at_label = tf.exp(chosen - total) - share - (1 - LABEL_SMOOTHING)
            places = tf.stack([tf.range(len(labels[0])), labels[0]], axis=1)
            smooth = tf.tensor_scatter_nd_update(smooth, places, at_label)
            return smooth * upstream[:, None]

        return losses, grad

    return per_token(logits[0])[None]


def ours(labels, logits):
    return smoothed_crossentropy(labels, logits, LABEL_SMOOTHING)


def step(loss):
    @tf.function
    def gradient(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = tf.reduce_mean(loss(labels, logits))
        return tape.gradient(value, logits)

    return gradient


def print_copies(tokens, size, width=256):
    """The peak of a process that computes both, beyond what it had before."""
    rng = np.random.default_rng(0)
    table = tf.Variable(rng.normal(size=(size, width)).astype("float32") / 20)
    hidden = tf.constant(rng.normal(size=(1, tokens, width)).astype("float32"))
    labels = tf.constant(rng.integers(0, size, (1, tokens)).astype("int32"))

    @tf.function
    def gradients(hidden, labels):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            logits = tf.matmul(hidden, table, transpose_b=True)
            value = tf.reduce_mean(ours(labels, logits))
        return tape.gradient(value, [hidden, table])

    gradients(hidden[:, :8], labels[:, :8])
    before = peak()
    for _ in range(3):
        gradients(hidden, labels)
    print(f"{(peak() - before) / (4 * tokens * size):.2f} copies of the logits")


def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    if arguments.memory:
        return print_copies(arguments.tokens, arguments.vocabulary_size)
    rng = np.random.default_rng(0)
    shape = 1, arguments.tokens
    logits = rng.normal(size=(*shape, arguments.vocabulary_size)).astype("float32")
    labels = rng.integers(0, arguments.vocabulary_size, shape).astype("int32")
    inputs = tf.constant(labels), tf.constant(logits)
    steps = {"ours": step(ours), "scattered": step(scattered)}
    one, other = (gradient(*inputs).numpy() for gradient in steps.values())
    distance = np.abs(one - other).max() / np.abs(other).max()
    print(f"largest difference over largest gradient: {distance:.1e}")
    seconds = {name: [] for name in steps}
    for _ in range(arguments.turns):
        for name, gradient in steps.items():
            since = time.perf_counter()
            gradient(*inputs)
            seconds[name].append(time.perf_counter() - since)
    for name, each in seconds.items():
        print(f"{name:>9}: median {1e3 * statistics.median(each):,.0f} ms")
    ratios = [a / b for a, b in zip(*seconds.values(), strict=True)]
    print(f"ours / scattered: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
