"""Strategies on JAX: `keras.distribution` under the names of `strategy`."""

import contextlib
import os

import keras

from keras_vanilla._checks import check_choice
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.replicas import replicas_in_force

ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
COUNT = "KERAS_DISTRIBUTION_NUM_PROCESSES"
NUMBER = "KERAS_DISTRIBUTION_PROCESS_ID"
NAMES = (ADDRESSES, COUNT, NUMBER)


def distribution(name: str = "auto") -> contextlib.AbstractContextManager:
    """Returns a scope in which batches are split over JAX's devices.

    | name | weights | rows of a batch |
    | --- | --- | --- |
    | "single" | on one device | on one device |
    | "mirrored" | on each device of this process | split over them |
    | "multi-worker" | on each device of all processes | split over them |
    | "tpu" | on each TPU core of this host | split over them |

    "auto" means "multi-worker" if the three `KERAS_DISTRIBUTION_` variables are set,
    "tpu" if there is one, "mirrored" if there are two or more GPUs, and "single"
    otherwise. Create `batches`, model and optimizer inside the scope, and call `fit`
    there.

    JAX compiles one step for all devices, so loss, clipping, metrics and dropout are
    those of one device with the whole batch. It compiles every shape separately, so
    `batches` use static shapes there.

    Args:
        name: str, from the table, or "auto".
    Returns:
        Context manager of the `keras.distribution.Distribution`, or None.
    Raises:
        ValueError: if the backend is not JAX, the name is unknown, or the required
            devices or variables are missing; in the scope, if rows cannot be split
            evenly.
    Example:
        with distribution("mirrored"):
            train = batches(corpus, tokenizer)
            model = Transformer.from_preset("base", source_vocabulary_size=32_000)
            compile_for_training(model)
            model.fit(train, epochs=10)
    Source: https://keras.io/guides/distribution.
    """
    if keras.backend.backend() != "jax":
        raise ValueError(
            "`keras.distribution` works only on the JAX backend. Received: backend="
            f"{keras.backend.backend()!r}"
        )
    makers = {
        "single": lambda: None,
        "mirrored": _mirrored,
        "multi-worker": _multi_worker,
        "tpu": _tpu,
    }
    check_choice("name", name, ("auto", *makers))
    return _in_force(makers[_best() if name == "auto" else name]())


def refuse_another_scope(model: keras.Model) -> None:
    """Refuses to train a model outside of the scope in which it was created.

    JAX would accept this. Outside the scope of several processes, each process would
    train only on its rows, without an error. This is called while a step is traced.

    Args:
        model: compiled keras.Model.
    Raises:
        ValueError: if the current distribution is not that of each variable.
    """
    expected = _mesh_of(keras.distribution.distribution())
    for variable in (*model.variables, *model.optimizer.variables):
        mesh = _mesh_of(keras_internals.layout_of(variable))
        if mesh != expected:
            raise ValueError(
                "Model, optimizer and `fit` must be in one strategy's scope. Received: "
                f"{variable.path} made with {mesh}, trained with {expected}"
            )


def _mesh_of(distribution_or_layout):
    return distribution_or_layout and distribution_or_layout.device_mesh.backend_mesh


@contextlib.contextmanager
def _in_force(new):
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(new)
    try:
        yield new
    finally:
        keras.distribution.set_distribution(before)


class _DataParallel(keras.distribution.DataParallel):
    """Refuses rows that JAX cannot split evenly, with advice."""

    def __init__(self, devices):
        # `batches` splits rows over the processes, so Keras must not split them again
        super().__init__(devices=devices, auto_shard_dataset=False)

    def get_data_layout(self, data_shape):
        here = replicas_in_force().here
        if data_shape[0] % here:
            raise ValueError(
                "The number of rows of each batch must be a multiple of the number of "
                f"replicas in this process, {here}: `batches` called inside the scope "
                f"adds rows of weight 0. Received: {data_shape[0]} rows"
            )
        return super().get_data_layout(data_shape)


def _best():
    import jax

    if jax.distributed.is_initialized():
        several = jax.process_count() > 1
    else:
        named = any(os.environ.get(name) for name in NAMES)
        several = named and os.environ.get(COUNT) != "1"
    if several:
        return "multi-worker"
    if jax.default_backend() == "tpu":
        return "tpu"
    gpus = jax.default_backend() != "cpu" and jax.local_device_count() > 1
    return "mirrored" if gpus else "single"


def _mirrored():
    import jax

    devices = jax.local_devices()
    if len(devices) < 2:
        raise ValueError(
            "The strategy 'mirrored' needs two devices or more in this process; use "
            f"'single'. Received: {', '.join(map(str, devices))}"
        )
    return _DataParallel(devices)


def _tpu():
    import jax

    if jax.default_backend() != "tpu":
        raise ValueError(
            "The strategy 'tpu' needs a TPU that JAX can use; 'auto' takes what there "
            f"is. Received: {jax.default_backend()} devices"
        )
    return _DataParallel(jax.local_devices())


def _multi_worker():
    import jax

    if not jax.distributed.is_initialized():
        _check_environment()
        try:
            keras.distribution.initialize()
        except RuntimeError as error:
            if "before any JAX calls" not in str(error):
                raise
            raise ValueError(
                "The strategy 'multi-worker' must be entered before JAX computes "
                "anything: before models and tensors."
            ) from error
    return _DataParallel(jax.devices())


def _check_environment():
    if missing := [name for name in NAMES if not os.environ.get(name)]:
        raise ValueError(
            "The strategy 'multi-worker' on JAX needs the environment variables "
            f"{', '.join(NAMES)}; with one process use 'mirrored' or 'single'. "
            f"Received: no {', '.join(missing)}"
        )
    addresses, count, number = (os.environ[name] for name in NAMES)
    are_numbers = count.isdecimal() and number.isdecimal()
    if not (are_numbers and 0 <= int(number) < int(count) and int(count) > 1):
        raise ValueError(
            f"{COUNT} must be at least 2 and {NUMBER} from 0 to one less. "
            f"Received: {count!r} and {number!r}"
        )
    for address in addresses.split(","):
        if not address.rpartition(":")[2].isdecimal():
            raise ValueError(
                f"{ADDRESSES} must be host:port, of process 0 or of all with commas "
                f"between. Received: {address!r}"
            )
