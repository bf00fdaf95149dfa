"""Comparisons of models and translators, bit for bit."""

import numpy as np


def assert_same_weights(received, expected):
    for one, other in zip(received.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def assert_same_translator(received, expected):
    assert_same_weights(received.model, expected.model)
    config = expected.model.get_config() | {"name": received.model.name}
    assert received.model.get_config() == config
    assert received.tokenizer.digest == expected.tokenizer.digest
