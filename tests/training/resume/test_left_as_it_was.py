"""A training with `ExactResume` leaves its process and its data as they were."""

import pytest
from small_fit import compiled, data, fit
from stopping import AfterBatches, Crash
from tensorflow.python.framework import config

from keras_vanilla.training import ExactResume


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


def test_data_and_operations_are_as_before_also_after_an_error(tmp_path):
    train = data(first_step=2)
    for crash in (3, 1, 0):  # 1: it is resumed, and reads from the sixth step on
        try:
            fit(compiled(), tmp_path, batches=train, crash=crash)
        except Crash:
            pass
        assert train.first_step() == 2
        assert not config.is_op_determinism_enabled()
