"""What every layer must do, whatever it computes; and weights to try it with."""

import inspect
import json

import keras
import numpy as np

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16", "float64")
# Some twelve roundings on a layer's longest way, each half a step of the compute dtype.
TOLERANCES = {
    "float32": 0.0,
    "mixed_bfloat16": 12 * 2**-8,
    "mixed_float16": 12 * 2**-11,
    "float64": 1e-5,
}


def randomize(layer, seed=0):
    """Draws every weight, so that no bias is 0 and no gain is 1."""
    random = np.random.default_rng(seed)
    for weight in layer.weights:
        drawn = random.normal(size=weight.shape)
        if len(weight.shape) > 1:
            scale = np.sqrt(weight.shape[-1])
            weight.assign(drawn / scale)
        else:
            weight.assign(0.2 * drawn + (1.0 if weight.path.endswith("gamma") else 0.0))
    return layer


def weights_of(layer):
    """Float64 arrays by path, without the layer's own name; a model has none there."""
    prefix = "" if isinstance(layer, keras.Model) else layer.name + "/"
    return {
        weight.path.removeprefix(prefix): array(weight, "float64")
        for weight in layer.weights
    }


def array(tensor, dtype="float32"):
    """A NumPy array of a tensor, also of a bfloat16 one."""
    return keras.ops.convert_to_numpy(keras.ops.cast(tensor, dtype))


def with_mask(inputs, mask):
    """A tensor that carries an implicit mask, as an embedding's output does."""
    tensor = keras.ops.convert_to_tensor(inputs)
    tensor._keras_mask = keras.ops.convert_to_tensor(mask)
    return tensor


def mask_of(tensor):
    mask = getattr(tensor, "_keras_mask", None)
    return None if mask is None else keras.ops.convert_to_numpy(mask)


def assert_close(actual, expected, tolerance):
    """The largest difference, measured against the largest expected number."""
    actual, expected = np.asarray(actual, "float64"), np.asarray(expected, "float64")
    assert actual.shape == expected.shape
    assert np.isfinite(actual).all()
    worst = np.abs(actual - expected).max() / np.abs(expected).max()
    assert worst <= tolerance


def check_layer(layer_class, arguments, inputs, folder):
    """Everything that Keras expects of a layer.

    Args:
        layer_class: the class.
        arguments: dict of constructor arguments, dropout 0.
        inputs: dict of arrays, the tensors `call` is given by name.
        folder: path for files.
    """
    layer = layer_class(**arguments)
    outputs = layer(**inputs)
    randomize(layer)
    check_configuration(layer_class, arguments)
    check_shapes(layer, inputs, tuple(outputs.shape))
    check_saving(layer, inputs, folder / "layer.keras")
    check_gradients(layer, inputs)
    expected = array(layer(**inputs), "float64")
    for policy in POLICIES:
        check_policy(layer, policy, inputs, expected)


def check_configuration(layer_class, arguments):
    layer = layer_class(**arguments, name="one")
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == config
    names = set(inspect.signature(layer_class.__init__).parameters)
    names -= {"self", "kwargs", "embeddings"}
    assert names <= set(config)
    for name, value in arguments.items():
        assert config[name] == value
        attribute = getattr(layer, name)
        assert value in (attribute, getattr(attribute, "__name__", None))
    assert layer_class.from_config(config).get_config() == config
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert type(again) is layer_class and again.get_config() == config
    assert keras.saving.get_registered_name(layer_class).startswith("keras_vanilla>")


def check_shapes(layer, inputs, shape):
    """The symbolic outputs have the eager shape, and an unknown one where that is."""
    known = {
        name: keras.Input(x.shape[1:], dtype=x.dtype) for name, x in inputs.items()
    }
    assert tuple(layer(**known).shape) == (None, *shape[1:])
    unknown = {
        name: keras.Input((None, *x.shape[2:]), dtype=x.dtype)
        for name, x in inputs.items()
    }
    assert tuple(layer(**unknown).shape) == (None, None, *shape[2:])
    shapes = [x.shape for x in inputs.values()]
    assert layer.compute_output_shape(*shapes) == shape


def functional(layer, inputs):
    """A model that holds the layer, for sequences of any length."""
    tensors = {
        name: keras.Input((None, *x.shape[2:]), dtype=x.dtype, name=name)
        for name, x in inputs.items()
    }
    return keras.Model(tensors, layer(**tensors))


def check_saving(layer, inputs, path):
    model = functional(layer, inputs)
    expected = model.predict(inputs, verbose=0)
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded.layers[-1]) is type(layer)
    np.testing.assert_array_equal(loaded.predict(inputs, verbose=0), expected)


def check_gradients(layer, inputs):
    """Every weight is trained by something of the size of the others' something.

    But for a bias on the keys: it adds the same to every score of a row.
    """
    import tensorflow as tf

    with tf.GradientTape() as tape:
        outputs = layer(**inputs)
        direction = np.random.default_rng(5).normal(size=outputs.shape)
        loss = keras.ops.sum(outputs * keras.ops.cast(direction, outputs.dtype))
    weights = layer.trainable_weights
    for weight, gradient in zip(
        weights, tape.gradient(loss, [w.value for w in weights]), strict=True
    ):
        assert gradient is not None, weight.path
        largest = np.abs(array(gradient)).max()
        assert np.isfinite(largest)
        assert largest > 1e-3 or weight.path.endswith("key/bias"), weight.path


def check_policy(layer, policy, inputs, expected):
    """The same numbers but for rounding, the right dtypes, and one step of `fit`."""
    dtypes = keras.dtype_policies.get(policy)
    config = {**layer.get_config(), "dtype": policy}
    other = type(layer).from_config(config)
    model = functional(other, inputs)
    other.set_weights(layer.get_weights())
    outputs = other(**inputs)
    assert keras.backend.standardize_dtype(outputs.dtype) == dtypes.compute_dtype
    assert {w.dtype for w in other.weights} <= {dtypes.variable_dtype}
    assert_close(array(outputs, "float64"), expected, TOLERANCES[policy])

    # A graph takes long to trace: only the policy whose losses Keras scales has one.
    eagerly = policy != "mixed_float16"
    model.compile("sgd", "mse", run_eagerly=eagerly, jit_compile=False)
    before = other.get_weights()
    history = model.fit(inputs, np.zeros(outputs.shape), verbose=0, epochs=1)
    assert np.isfinite(history.history["loss"]).all()
    if before:
        moved = [
            np.abs(a - b).max()
            for a, b in zip(other.get_weights(), before, strict=True)
        ]
        assert max(moved) > 0 and np.isfinite(moved).all()
