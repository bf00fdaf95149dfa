"""Errors of Python and of the backends as one sentence."""

import errno
import os

import pytest
import tensorflow as tf

from keras_vanilla._out_of_memory import is_out_of_memory
from keras_vanilla.cli import is_expected, sentence


class OutOfMemoryError(RuntimeError):
    """As torch.OutOfMemoryError."""


def exhausted(message):
    return tf.errors.ResourceExhaustedError(None, None, message)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        exhausted("OOM when allocating tensor with shape[9]\n\t [[node]]"),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB."),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exhausted_memory_has_a_remedy(error):
    assert is_expected(error) and is_out_of_memory(error)
    assert sentence(error, "train") == (
        "There is not enough memory: train on each batch in parts with "
        "--micro-batches N, or on smaller ones with --tokens-per-batch N."
    )
    assert "--beam-size" in sentence(error, "translate")
    assert sentence(error, "describe") == "There is not enough memory."


def test_full_disk_of_tensorflow_is_not_memory():
    error = exhausted("out/variables; No space left on device\nmore")
    assert sentence(error, "train") == "out/variables; No space left on device"


def test_tensorflows_errors_are_their_first_line():
    error = tf.errors.DataLossError(
        None, None, "corrupted record at 0\n\t [[{{node}}]]"
    )
    assert is_expected(error)
    assert sentence(error) == "corrupted record at 0"


def test_mistakes_of_the_package_keep_their_traceback():
    assert not is_expected(KeyError("x")) and not is_expected(TypeError("x"))
