"""Fixtures of several folders of tests."""

import gc
import os
import sys

import bare_machine

bare_machine.hide_settings()  # before Keras is imported
bare_machine.share_processors()
bare_machine.hide_fonts()
bare_machine.heed_ctrl_c()

import pytest  # noqa: E402
import word_reversal  # noqa: E402
from checks import randomize  # noqa: E402
from once_per_run import made_once  # noqa: E402

from keras_vanilla import Transformer, Translator, export  # noqa: E402

# Files of several minutes come first: at the end one worker would wait for the other.
LONGEST = ("tests/test_notebooks.py", "tests/test_recipes.py")
FILE_LIMITS = {"max_bytes": 160, "max_source_length": 29, "max_length": 59}


def pytest_collection_modifyitems(items):
    """Processes that share the tests must agree on their names."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
    for item in items:
        if " at 0x" in item.name:
            raise pytest.UsageError(
                f"The name of a test must not change from run to run: give its "
                f"parameters `ids`. Received: {item.nodeid}"
            )


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk():
    """No test cuts the power, and on a busy disk each snapshot would wait seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def little_garbage_to_look_through():
    """Keras collects garbage for each layer that it quantises.

    Beside all modules of TensorFlow and the tests before, each time takes a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_garbage_collection():
    """For files nested beyond the limit of recursion.

    At the limit, a finaliser of whatever an earlier test left behind would fail.
    """
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def as_deterministic_as_before():
    """`ExactResume` makes a process deterministic, in which Keras compiles less."""
    yield
    if "tensorflow" in sys.modules:
        from tensorflow.python.framework import config

        config.disable_op_determinism()


@pytest.fixture(scope="session")
def trained_file():
    """A tiny trained translator's file."""
    return word_reversal.TRAINED


@pytest.fixture(scope="session")
def trained_translator(trained_file):
    """A tiny trained translator; a test that changes its weights takes a `copy()`."""
    return Translator.load(trained_file)


@pytest.fixture(scope="session")
def small_translator(trained_translator):
    """An untrained translator that is quickly exported."""
    tokenizer = trained_translator.tokenizer
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "max_length": 60, **layers}
    model = Transformer(tokenizer.vocabulary_size, **sizes)
    return Translator(tokenizer, randomize(model))


@pytest.fixture(scope="session")
def two_layer_translator(trained_translator):
    """An untrained translator with two layers per stack."""
    tokenizer = trained_translator.tokenizer
    size = tokenizer.vocabulary_size
    model = Transformer.from_preset(
        "tiny", source_vocabulary_size=size, dropout=0.0, max_length=60
    )
    return Translator(tokenizer, randomize(model))


@pytest.fixture(scope="session")
def text_file(trained_translator, tmp_path_factory):
    """In int8."""
    return made_once(
        tmp_path_factory,
        "text.tflite",
        lambda path: export.tflite(trained_translator, path, **FILE_LIMITS),
    )


@pytest.fixture(scope="session")
def unseen_sentences():
    """200; some are longer than any that the translator was trained on."""
    seen = word_reversal.english_sentences
    return seen(170, seed=1) + seen(30, seed=2, lengths=range(10, 13))
