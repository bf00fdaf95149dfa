import keras
import numpy as np
import pytest
import reference
from checks import array, check_layer, mask_of, with_mask
from tiers import in_full

from keras_vanilla.layers import PositionalEncoding

B, T, D = 3, 5, 14
LAYOUTS = ("interleaved", "concatenated", "tensor2tensor")
HALF_STEPS = {  # half the distance of neighbouring numbers, relative
    "float32": 2**-24,
    "mixed_bfloat16": 2**-8,
    "mixed_float16": 2**-11,
    "bfloat16": 2**-8,
    "float64": 0.0,
}


@pytest.mark.filterwarnings("ignore:The model does not have any trainable weights")
@pytest.mark.parametrize("layout", [LAYOUTS[0], *in_full(*LAYOUTS[1:])])
def test_is_a_keras_layer(layout, tmp_path):
    inputs = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
    arguments = {"layout": layout, "max_wavelength": 97, "dropout": 0.0}
    check_layer(PositionalEncoding, arguments, {"inputs": inputs}, tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", HALF_STEPS)
def test_precise_up_to_position_2048_in_every_policy(policy, layout):
    layer = PositionalEncoding(layout=layout, max_wavelength=9973, dtype=policy)
    expected = reference.positional_encoding(2049, D, 0, layout, 9973.0)
    actual = array(layer(np.zeros((1, 2049, D))), "float64")[0]
    before_the_last_cast = 1e-11 if policy == "float64" else 3e-4
    last_cast = HALF_STEPS[policy] * (np.abs(expected) + before_the_last_cast) + 2**-25
    last_cast *= policy != "float64"
    assert (np.abs(actual - expected) <= before_the_last_cast + last_cast).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_start_index_shifts_the_positions(layout, as_tensor):
    start = keras.ops.convert_to_tensor(7, dtype="int32") if as_tensor else 7
    layer = PositionalEncoding(layout=layout)
    whole = layer(np.zeros((1, 7 + T, D), "float32"))
    late = layer(np.zeros((1, T, D), "float32"), start_index=start)
    np.testing.assert_array_equal(late[0], whole[0, 7:])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shifted_position_is_a_rotation(layout):
    """sin(a + k w) and cos(a + k w) are sin a and cos a turned by k w."""
    shift, layer = 11, PositionalEncoding(layout=layout, dtype="float64")
    zeros = np.zeros((1, T, D))
    near, far = (
        array(layer(zeros, start_index=start), "float64")[0] for start in (0, shift)
    )
    sines = np.arange(0, D, 2) if layout == "interleaved" else np.arange(D // 2)
    cosines = sines + (1 if layout == "interleaved" else D // 2)
    exponents = np.arange(0, D, 2) / (D - 2 if layout == "tensor2tensor" else D)
    turn = shift / 10_000**exponents
    np.testing.assert_allclose(
        far[:, sines],
        near[:, sines] * np.cos(turn) + near[:, cosines] * np.sin(turn),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        far[:, cosines],
        near[:, cosines] * np.cos(turn) - near[:, sines] * np.sin(turn),
        atol=1e-12,
    )


def test_inputs_are_added_before_the_last_cast():
    layer = PositionalEncoding(dtype="mixed_bfloat16")
    inputs = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
    rounded = array(keras.ops.cast(inputs, "bfloat16"))
    expected = rounded + array(PositionalEncoding()(np.zeros((1, T, D), "float32")))
    np.testing.assert_array_equal(
        array(layer(inputs)), array(keras.ops.cast(expected, "bfloat16"))
    )


@pytest.mark.parametrize("start_index", [0, keras.ops.convert_to_tensor(2)])
def test_mask_is_passed_on(start_index):
    mask = np.array([[True, True, False], [True, False, False]])
    inputs = with_mask(np.zeros((2, 3, D), "float32"), mask)
    outputs = PositionalEncoding()(inputs, start_index=start_index)
    np.testing.assert_array_equal(mask_of(outputs), mask)


def test_dropout_is_active_in_training_alone():
    layer = PositionalEncoding(dropout=0.5)
    inputs = np.full((B, T, D), 2.0, "float32")
    kept = array(layer(inputs))
    np.testing.assert_array_equal(array(layer(inputs, training=False)), kept)
    dropped = array(layer(inputs, training=True))
    assert 0.2 < (dropped == 0).mean() < 0.8
    np.testing.assert_allclose(dropped[dropped != 0], 2 * kept[dropped != 0])
