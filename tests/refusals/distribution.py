"""What strategies refuse."""

import json
import os
from unittest import mock

import keras
import tensorflow as tf
from refusal import Refusal

from keras_vanilla.distribution import strategies, strategy
from keras_vanilla.distribution.jax_devices import distribution


def enter(name, **variables):
    """Function that enters a strategy with these environment variables alone."""

    def call():
        with mock.patch.dict(os.environ, variables):
            for other in {"TF_CONFIG", "TPU_NAME"} - variables.keys():
                os.environ.pop(other, None)
            with strategy(name):
                pass

    return call


def tf_config(workers, **task):
    cluster = {"worker": [f"localhost:{port}" for port in range(2222, 2222 + workers)]}
    return json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": 0, **task}}
    )


def inside_another():
    with tf.distribute.OneDeviceStrategy("/CPU:0").scope():
        enter("single")()


def with_keras_distribution():
    of_keras = mock.patch.object(keras.distribution, "distribution", lambda: "mine")
    with of_keras:
        enter("single")()


def after_first_tensor():
    tf.constant(0)
    enter("multi-worker", TF_CONFIG=tf_config(2))()


CLUSTERS = {
    "{": "Received: {$",
    "[]": r"Received: \[\]",
    '{"cluster": {"worker": ["a:1", "b:1"]}}': "cluster and a task",
    tf_config(2, index="x"): "cluster and a task",
    tf_config(2, index=2): r"\('worker', 2\)",
    tf_config(2, type="ps"): r"\('ps', 0\)",
    tf_config(1): "`TF_CONFIG` names 1",
}
ROWS = [
    Refusal("unknown name", enter("dp"), "`name` .*'auto', 'single', .*'dp'"),
    Refusal("one in another", inside_another, "inside another.*OneDeviceStrategy"),
    Refusal("keras.distribution", with_keras_distribution, "`keras.distribution`"),
    Refusal("mirrored on one device", enter("mirrored"), 'Use "single" on one device'),
    Refusal("TPU without name", enter("tpu"), "`TPU_NAME`"),
    Refusal("no cluster", enter("multi-worker"), "`TF_CONFIG`"),
    *(
        Refusal(f"cluster {text}", enter("multi-worker", TF_CONFIG=text), pattern)
        for text, pattern in CLUSTERS.items()
    ),
    Refusal("late multi-worker", after_first_tensor, "before TensorFlow makes"),
    Refusal("PyTorch", lambda: strategies._of_torch("mirrored"), "'mirrored' needs"),
    Refusal("JAX's on TensorFlow", lambda: distribution("single"), "JAX.*'tensorflow'"),
]
