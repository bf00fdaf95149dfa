"""What several folders of tests share."""

import sys

import pytest
import word_reversal


@pytest.fixture(autouse=True)
def as_deterministic_as_before():
    """`ExactResume` makes a process deterministic, in which Keras compiles less."""
    yield
    if "tensorflow" in sys.modules:
        from tensorflow.python.framework import config

        config.disable_op_determinism()


@pytest.fixture(scope="session")
def trained_translator():
    """A tiny trained translator; whoever changes its weights takes a `copy()`."""
    return word_reversal.train_translator()


@pytest.fixture(scope="session")
def unseen_sentences():
    """200; some are longer than any that the translator was trained on."""
    seen = word_reversal.english_sentences
    return seen(170, seed=1) + seen(30, seed=2, lengths=range(10, 13))
