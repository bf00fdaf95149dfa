"""What TensorFlow and NumPy each need of the batches, in processes of their own."""

import os
import subprocess
import sys

import pytest

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer

CORPUS = """
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
lines = [f"some words {n}" for n in range(999)]
tokenizer = Tokenizer.train(lines, vocabulary_size=280)
data = batches(ParallelCorpus(lines, lines), tokenizer, 400)
"""
WITHOUT_TENSORFLOW = """
import itertools, sys
for batch in itertools.islice(data, 2 * data.steps_per_epoch):
    pass
assert "keras_vanilla.data.tf_pipeline" not in sys.modules
"""
PREFETCHING_AT_THE_END = """
iterators = [iter(data.dataset().prefetch(30_000)) for _ in range(3)]
for iterator in iterators:
    next(iterator)
print("opened", flush=True)
input()
"""
BUSY = "print(flush=True)\nwhile True: pass"


def python(program, **options):
    """A process of Python that runs a program and has pipes."""
    command = [sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes, **options)


@pytest.mark.full
def test_numpy_batches_need_no_tensorflow():
    environment = os.environ | {"KERAS_BACKEND": "jax"}
    pytest.importorskip("jax")
    hidden = "import sys; sys.modules['tensorflow'] = None\n"
    subprocess.run(
        [sys.executable, "-c", hidden + CORPUS + WITHOUT_TENSORFLOW],
        env=environment,
        check=True,
        timeout=600,
    )


@pytest.mark.parametrize(
    ("backend", "hidden"), [("tensorflow", []), ("jax", ["GPU"]), ("torch", ["GPU"])]
)
def test_the_gpus_are_the_backends_alone(monkeypatch, backend, hidden):
    import keras
    import tensorflow as tf

    lines = ["some words"] * 9
    tokenizer = Tokenizer.train(lines, vocabulary_size=270)
    data = batches(ParallelCorpus(lines, lines), tokenizer, 400)
    calls = []
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda *devices: calls.append(devices)
    )
    data.dataset()
    assert calls == [([], kind) for kind in hidden]


@pytest.mark.full
def test_a_process_ends_while_batches_are_prefetched_on_a_busy_machine():
    prefetching = python(CORPUS + PREFETCHING_AT_THE_END)
    assert prefetching.stdout.readline() == "opened\n"
    busy = [python(BUSY) for _ in range(3)]
    try:
        for process in busy:
            process.stdout.readline()
        prefetching.communicate("\n", timeout=600)
        assert prefetching.returncode == 0
    finally:
        for process in (*busy, prefetching):
            process.kill()
            process.communicate()


@pytest.mark.full
def test_a_failed_batch_does_not_delay_the_end():
    """A call that is missed would be waited for as long as it may take."""
    failing = """
import tensorflow as tf
from keras_vanilla.data import tf_pipeline
tf_pipeline.MOST_SECONDS = float("inf")
iterator = iter(data.dataset())
next(iterator)
data._padder.arrays = None
try:
    while True:
        next(iterator)
except tf.errors.OpError:
    pass
"""
    command = [sys.executable, "-c", CORPUS + failing]
    subprocess.run(command, check=True, timeout=300)
