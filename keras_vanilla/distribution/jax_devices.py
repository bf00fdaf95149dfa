"""Strategies on JAX: `keras.distribution` under the names of `strategy`."""

import contextlib

import keras

from keras_vanilla.distribution import jax_processes, keras_internals
from keras_vanilla.distribution.replicas import replicas_in_force


def distribution(
    name: str = "auto", shards: int | None = None
) -> contextlib.AbstractContextManager:
    """A scope in which batches, or also the weights, are split over JAX's devices.

    | name | weights | rows of a batch |
    | --- | --- | --- |
    | "single" | on one device | on one device |
    | "mirrored" | on each device of this process | split over them |
    | "multi-worker" | on each device of all processes | split over them |
    | "model-parallel" | each split over `shards` devices | split over the groups |
    | "tpu" | on each TPU core of this host | split over them |

    "auto" is "multi-worker" where the three `KERAS_DISTRIBUTION_` variables are set,
    "tpu" where there is one, "mirrored" with two GPUs or more, else "single". Make
    `batches`, model and optimizer inside the scope, and `fit` there.

    JAX compiles one step for all devices: loss, clipping, metrics and dropout are those
    of one device with the whole batch. It compiles every shape again, so that `batches`
    have static shapes there.

    Args:
        name: str, from the table, or "auto".
        shards: int. For "model-parallel": number of devices that share one copy of the
            weights; None means all of this process.
    Returns:
        Context manager of the `keras.distribution.Distribution`, or None.
    Raises:
        ValueError: if the backend is not JAX, there is no such name, the devices or
            the variables for it are not there, or `shards` does not fit; in the scope,
            if weights or rows cannot be split evenly.
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
            "`keras.distribution` works on the JAX backend alone. Received: backend="
            f"{keras.backend.backend()!r}"
        )
    makers = {
        "single": lambda: None,
        "mirrored": _mirrored,
        "multi-worker": _multi_worker,
        "model-parallel": lambda: _model_parallel(shards),
        "tpu": _tpu,
    }
    if name not in ("auto", *makers):
        raise ValueError(
            f"Unknown strategy {name!r}. On JAX choose one of: auto, "
            f"{', '.join(makers)}"
        )
    if shards is not None and name != "model-parallel":
        raise ValueError(
            "`shards` goes with 'model-parallel' alone. Received: "
            f"shards={shards}, name={name!r}"
        )
    return _in_force(makers[_best() if name == "auto" else name]())


def layout_map(
    device_mesh: keras.distribution.DeviceMesh,
) -> keras.distribution.LayoutMap:
    """How a Transformer's weights are split over the axis "model" of a mesh.

    Embeddings are split by vocabulary, attention by heads, feed-forward networks by
    inner width: each device computes its part of the logits, heads and inner units,
    and the parts are summed once after each. All other weights are on every device.

    Args:
        device_mesh: keras.distribution.DeviceMesh with an axis "model".
    Returns:
        keras.distribution.LayoutMap.
    Source: Shoeybi et al. 2019, section 3.
    """
    layouts = keras.distribution.LayoutMap(device_mesh)
    layouts[".*embedding/embeddings"] = ("model", None)  # (V, D)
    layouts[".*output_projection/embeddings"] = ("model", None)  # (V, D)
    layouts[".*attention/(query|key|value)/kernel"] = (None, "model", None)  # (D, N, H)
    layouts[".*attention/(query|key|value)/bias"] = ("model", None)  # (N, H)
    layouts[".*attention/attention_output/kernel"] = ("model", None, None)  # (N, H, D)
    layouts[".*feed_forward/inner/kernel"] = (None, "model")  # (D, F)
    layouts[".*feed_forward/inner/bias"] = ("model",)  # (F,)
    layouts[".*feed_forward/outer/kernel"] = ("model", None)  # (F, D)
    layouts[".*logits_bias/bias"] = ("model",)  # (V,)
    return layouts


def refuse_another_scope(model: keras.Model) -> None:
    """Refuses to train a model in another scope than it was made in.

    JAX itself accepts it: outside the scope of several processes, each process would
    train on its own rows only, without an error. Called while a step is traced.

    Args:
        model: compiled keras.Model.
    Raises:
        ValueError: if the distribution in force is not that of each variable.
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


class _EvenRows:
    """Refuses rows that JAX cannot split evenly, with what to do."""

    def get_data_layout(self, data_shape):
        here = replicas_in_force().here
        if data_shape[0] % here:
            raise ValueError(
                "The number of rows of each batch must be a multiple of the number of "
                f"replicas in this process, {here}: `batches` called inside the scope "
                f"adds rows of weight 0. Received: {data_shape[0]} rows"
            )
        return super().get_data_layout(data_shape)


class _DataParallel(_EvenRows, keras.distribution.DataParallel):
    def __init__(self, devices):
        # `batches` gives each process its own rows: Keras must not split them again
        super().__init__(devices=devices, auto_shard_dataset=False)


class _ModelParallel(_EvenRows, keras.distribution.ModelParallel):
    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        shards = self.device_mesh.shape[1]
        for size, axis in zip(variable.shape, layout.axes, strict=True):
            if axis == "model" and size % shards:
                raise ValueError(
                    "The vocabulary's size, `num_heads` and `d_ff` must be divisible "
                    f"by `shards`. Received: shards={shards}, and {variable.path} of "
                    f"shape {tuple(variable.shape)}"
                )
        return layout


def _best():
    import jax

    if jax_processes.are_several():
        return "multi-worker"
    if jax.default_backend() == "tpu":
        return "tpu"
    gpus = jax.default_backend() != "cpu" and jax.local_device_count() > 1
    return "mirrored" if gpus else "single"


def _mirrored():
    return _DataParallel(_two_or_more_devices("mirrored"))


def _model_parallel(shards):
    if jax_processes.are_several():
        raise ValueError(
            "The strategy 'model-parallel' needs a single process: with several, none "
            "could read all weights to save them. Use 'multi-worker', where every "
            "process has all weights."
        )
    devices = _two_or_more_devices("model-parallel")
    shards = len(devices) if shards is None else shards
    if shards < 2 or len(devices) % shards:
        raise ValueError(
            f"`shards` must be at least 2 and divide the number of devices, "
            f"{len(devices)}. Received: {shards}"
        )
    shape = (len(devices) // shards, shards)
    mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"), devices)
    return _ModelParallel(layout_map=layout_map(mesh), auto_shard_dataset=False)


def _two_or_more_devices(name):
    import jax

    devices = jax.local_devices()
    if len(devices) < 2:
        raise ValueError(
            f"The strategy {name!r} needs two devices or more in this process; use "
            f"'single'. Received: {', '.join(map(str, devices))}"
        )
    return devices


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

    jax_processes.join()
    return _DataParallel(jax.devices())
