"""A training with `ExactResume` leaves its process and its data as they were."""

import pytest
import tensorflow as tf
from small_fit import compiled, data, fit
from stopping import AfterBatches, Crash
from tensorflow.python.framework import config

from keras_vanilla.training import Diverged, ExactResume


def test_making_the_object_changes_nothing(tmp_path):
    ExactResume(tmp_path)
    assert not config.is_op_determinism_enabled()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", [False, True])
def test_operations_are_as_deterministic_afterwards_as_before(tmp_path, before):
    seen = []
    look = AfterBatches(1, lambda: seen.append(config.is_op_determinism_enabled()))
    if before:
        config.enable_op_determinism()
    with pytest.warns(UserWarning, match="AfterBatches"):
        fit(compiled(), tmp_path, [look], epochs=1)
    assert seen == [True]
    assert config.is_op_determinism_enabled() is before


@pytest.mark.parametrize("error", [Crash, Diverged])
def test_they_are_after_an_error_too(tmp_path, error):
    rate, crash = (0.05, 2) if error is Crash else (1e30, 0)
    with pytest.raises(error):
        fit(compiled(rate), tmp_path, crash=crash, epochs=1)
    tf.random.normal([2])  # which needs a seed where operations are deterministic


def test_the_data_begin_where_they_began_also_after_an_error(tmp_path):
    train = data(first_step=2)
    for crash in (3, 1, 0):  # 1: it is resumed, and reads from the sixth step on
        try:
            fit(compiled(), tmp_path, batches=train, crash=crash)
        except Crash:
            pass
        assert train.first_step() == 2
