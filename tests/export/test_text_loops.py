"""Loops are cut inside a file as they are in Python."""

import random

import numpy as np
import tensorflow as tf

from keras_vanilla.export import text_loops
from keras_vanilla.translation.loops import without_loops

SIZE, SOURCES = 300, ("", "lala lala", "lalalalala", "no no no no", "....", "éé")


def octets(text, size):
    return np.frombuffer(text.encode().ljust(size, b"\0"), "uint8")


def texts(count):
    draw = random.Random(2)
    while count:
        units = [
            "".join(draw.choices("ab .1é字", k=draw.choice([1, 2, 3, 4, 9])))
            for _ in range(draw.randint(1, 5))
        ]
        text = "".join(unit * draw.choice([1, 1, 2, 3, 4, 5, 9]) for unit in units)
        if len(text.encode()) < SIZE:
            count -= 1
            yield text, draw.choice(SOURCES)


def test_a_file_cuts_what_python_cuts():
    specs = [
        tf.TensorSpec([SIZE], tf.uint8),
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([3], tf.int32),
        tf.TensorSpec([20], tf.uint8),
    ]
    graph = tf.function(text_loops.without_loops, specs, autograph=False)
    changed = kept = 0
    for text, source in texts(200):
        size = len(text.encode())
        ends = sorted((0, random.Random(size).randint(0, size), size))
        received, places = graph(octets(text, SIZE), size, ends, octets(source, 20))
        expected = without_loops(text, source)
        assert bytes(received.numpy()).rstrip(b"\0").decode() == expected
        begin, middle, end = places.numpy().tolist()
        assert begin == 0 <= middle <= end == len(expected.encode())
        if expected == text:
            assert middle == ends[1]
        changed += expected != text
        kept += without_loops(text, "") != expected
    assert changed > 50 and kept > 15
