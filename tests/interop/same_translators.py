"""Whether a model or a translator is another one, to the last bit."""

import numpy as np


def assert_same_weights(received, expected):
    """Those of two models."""
    for one, other in zip(received.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def assert_same_translator(received, expected):
    """Weights, configuration and tokenizer."""
    assert_same_weights(received.model, expected.model)
    config = expected.model.get_config() | {"name": received.model.name}
    assert received.model.get_config() == config
    assert received.tokenizer.digest == expected.tokenizer.digest
