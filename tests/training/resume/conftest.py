"""A training of `small_fit` that nothing stops, which the others must equal."""

import functools

import pytest
from small_fit import compiled, fit, validation


@pytest.fixture(scope="session")
def whole_of(tmp_path_factory):
    """A function of metrics: the history and weights of four validated epochs."""

    @functools.cache
    def train(metrics=("mae",)):
        model, folder = compiled(metrics=metrics), tmp_path_factory.mktemp("whole")
        history = fit(model, folder, validation_data=validation()).history
        return history, [value.tobytes() for value in model.get_weights()]

    return train


@pytest.fixture
def whole(whole_of):
    """Its history and weights with the default metrics."""
    return whole_of()


@pytest.fixture
def weights_of():
    """A function of a model: the bytes of each of its weights."""
    return lambda model: [value.tobytes() for value in model.get_weights()]
