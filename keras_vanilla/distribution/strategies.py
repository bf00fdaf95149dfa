"""Strategies for training on one device, several devices or machines, or TPUs."""

import contextlib
import functools
import json
import os
from collections.abc import Sequence

import keras

from keras_vanilla._checks import check_choice
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.replicas import workers_of


@contextlib.contextmanager
def strategy(name: str = "auto") -> contextlib.AbstractContextManager:
    """Opens a scope to create batches, model and optimizer for several devices.

        with strategy("mirrored"):
            train = batches(corpus, tokenizer)
            model = Transformer.from_preset("base", ...)
            compile_for_training(model)
            model.fit(train, epochs=10)

    Every device has a copy of the weights and takes the same number of rows of each
    batch; gradients are summed before they are clipped and applied. The trained weights
    are those of one device, up to rounding. Only dropout differs, because TensorFlow's
    devices draw the same numbers for different rows. A custom loss must return one
    value per example. If it returns a scalar, gradients are too large by a factor of
    the number of devices, without an error.

    On JAX, the strategies are those of `jax_devices.distribution`. PyTorch supports
    only "single".

    "tpu" follows TensorFlow's rules but has never been run. It needs batches of one
    shape, which `batches` creates inside its scope.

    Args:
        name: "auto": "tpu" if the environment names one, "multi-worker" if it names
            other workers, "mirrored" with two or more GPUs, otherwise "single".
            "single": the first GPU, or the CPU.
            "mirrored": all GPUs of this machine, or two or more logical CPU devices.
            "multi-worker": the same program on every machine, each with `TF_CONFIG`
            set. Enter the scope before using anything else of TensorFlow.
            "tpu": the TPU in `TPU_NAME`.
    Yields:
        The current `tf.distribute.Strategy` or `keras.distribution.Distribution`, or
        None.
    Raises:
        ValueError: if the name is unknown, or the strategy cannot work here.
    Source: Vaswani et al. 2017, section 5.2: 8 GPUs.
    """
    check_choice("name", name, ("auto", "single", "mirrored", "multi-worker", "tpu"))
    with _SCOPES[keras.backend.backend()](name) as scope:
        yield scope


def _of_torch(name):
    if name not in ("auto", "single"):
        raise ValueError(
            f"The strategy {name!r} needs the TensorFlow or the JAX backend: on "
            "PyTorch Keras trains on one device."
        )
    return contextlib.nullcontext()


def _of_jax(name):
    from keras_vanilla.distribution.jax_devices import distribution

    return distribution(name)


@contextlib.contextmanager
def _of_tensorflow(name):
    if keras.distribution.distribution() is not None:
        raise ValueError(
            "A `keras.distribution` is set, which Keras ignores on the TensorFlow "
            "backend. Use `strategy` alone, or the JAX backend."
        )
    makers = {
        "single": _single,
        "mirrored": _mirrored,
        "multi-worker": _multi_worker,
        "tpu": _tpu,
    }
    strategy = makers[_chosen() if name == "auto" else name]()
    several = strategy.num_replicas_in_sync > 1
    with keras_internals.overrides() if several else contextlib.nullcontext():
        with strategy.scope():
            yield strategy


def _chosen():
    """Returns the name for "auto" without starting TensorFlow's devices."""
    import tensorflow as tf

    if os.environ.get("TPU_NAME"):
        return "tpu"
    if "TF_CONFIG" in os.environ and len(_workers()) > 1:
        return "multi-worker"
    several = len(tf.config.list_physical_devices("GPU")) > 1
    return "mirrored" if several else "single"


def _single():
    """Uses TensorFlow's default, the first GPU or the CPU.

    `OneDeviceStrategy` is not used, because its datasets are generators. The first
    generator makes TensorFlow on Python 3.11 return the memory of every tensor above
    128 KiB to the system at once (`ApplyPython311MemoryPatch`), and training is half as
    fast on a CPU.
    """
    import tensorflow as tf

    if tf.distribute.has_strategy():
        raise ValueError(
            "The strategy 'single' cannot be entered inside another one. Received: "
            f"{type(tf.distribute.get_strategy()).__name__} in force"
        )
    return tf.distribute.get_strategy()


@functools.cache
def _mirrored():
    import tensorflow as tf

    for kind in ("GPU", "CPU"):
        devices = [device.name for device in tf.config.list_logical_devices(kind)]
        if len(devices) > 1:
            return tf.distribute.MirroredStrategy(devices)
    raise ValueError(
        "The strategy 'mirrored' needs two or more GPUs, or logical CPU devices made "
        'by `tf.config.set_logical_device_configuration`. Use "single" on one device.'
    )


@functools.cache  # a second one would reuse the numbers of collectives, and fail
def _multi_worker():
    import tensorflow as tf

    workers = _workers()
    if len(workers) < 2:
        raise ValueError(
            "The strategy 'multi-worker' needs two or more workers. `TF_CONFIG` names "
            f'{len(workers)}: use "mirrored" or "single".'
        )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise ValueError(
            "The strategy 'multi-worker' must be entered before TensorFlow makes its "
            "first tensor: before datasets, models, and `set_random_seed`."
        ) from error


def _workers():
    """Returns (type, index) of all workers in `TF_CONFIG` after checking it.

    Raises:
        ValueError: if it is not set, not JSON, or its task is not in its cluster.
    """
    text = os.environ.get("TF_CONFIG")
    expected = (
        "the JSON of a cluster and a task, such as "
        '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
        '"task": {"type": "worker", "index": 0}}'
    )
    if not text:
        raise ValueError(
            "The strategy 'multi-worker' reads the other workers' addresses from the "
            f"environment variable `TF_CONFIG`: set it to {expected}."
        )
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        workers = workers_of(cluster)
        mine = task["type"], int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"`TF_CONFIG` must be {expected}. Received: {text}") from error
    if mine not in workers:
        raise ValueError(
            f"The task in `TF_CONFIG` must be one of the cluster's workers, {workers}. "
            f"Received: {mine}"
        )
    return workers


@functools.cache
def _tpu():
    import tensorflow as tf

    name = os.environ.get("TPU_NAME")
    if not name:  # the resolver would search the network and hang
        raise ValueError(
            "The strategy 'tpu' needs the environment variable `TPU_NAME`: a TPU's "
            'name, or "local" on a TPU\'s own machine.'
        )
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


_SCOPES = {"tensorflow": _of_tensorflow, "jax": _of_jax, "torch": _of_torch}


def default_shapes(
    static_shapes: bool | None, widths: Sequence[int] | None, max_tokens: int
) -> tuple[bool, Sequence[int] | None]:
    """Returns settings that limit the number of shapes if each one is compiled.

    On JAX, every bucket has one shape; on a TPU under TensorFlow, all batches have the
    same shape.

    Args:
        static_shapes: bool, or None for the default.
        widths: the longest sequence of each bucket, or None for the default.
        max_tokens: int. The longest sequence.
    Returns:
        Tuple of a bool, whether shapes are static, and the widths. None means several
        buckets.
    """
    on_tpu, backend = False, keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if static_shapes is None:
        static_shapes = on_tpu or backend == "jax"
    if widths is None and on_tpu:
        widths = (max_tokens,)
    return bool(static_shapes), widths
