import numpy as np
import pytest
from keras import ops

from keras_vanilla.decoding.top_k import blockwise_top_k


@pytest.mark.parametrize("size", [5, 127, 1031, 4096, 9973])
@pytest.mark.parametrize("k", [1, 4])
def test_top_k_equals_sorting(size, k):
    rng = np.random.default_rng(size)
    values = rng.normal(size=(3, size)).astype("float32").round(2)  # many are equal
    values[0, 3:] = -np.inf
    best, places = map(np.asarray, blockwise_top_k(ops.convert_to_tensor(values), k))
    expected = np.argsort(-values, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(best, np.take_along_axis(values, expected, axis=1))
    np.testing.assert_array_equal(places[1:], expected[1:])
    assert places.dtype == np.int32 and 0 <= places.min() <= places.max() < size


def test_top_k_keeps_order_of_equal_values():
    places = np.asarray(blockwise_top_k(ops.zeros((2, 3000)), 3)[1])
    assert places.tolist() == [[0, 1, 2]] * 2
