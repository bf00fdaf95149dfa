"""Any thread may translate at any time, also before anything has been translated."""

import pytest
from child_process import run

from keras_vanilla import Translator, export

from . import thread_probe

TEXTS = ["three houses", "one two", "", "two old trees and one house", "a"]


@pytest.mark.full
def test_searches_find_what_they_find_one_by_one():
    thread_probe.check_all_models()


@pytest.mark.full
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_searches_on_other_backends(backend):
    pytest.importorskip(backend)
    run(thread_probe.__file__, backend=backend)


@pytest.mark.full
def test_export_and_translation_run_side_by_side(trained_file, tmp_path):
    translator = Translator.load(trained_file)
    expected = translator.translate(TEXTS)
    translator = Translator.load(trained_file)
    small = {"max_bytes": 20, "max_length": 8, "check": "structure"}
    exports = [
        lambda: export.tflite(translator, tmp_path / "a.tflite", **small),
        lambda: export.tflite(translator, tmp_path / "b.tflite", **small),
        lambda: export.saved_model(translator, tmp_path / "c", core_operators=True),
        lambda: export.saved_model(translator, tmp_path / "d", core_operators=True),
    ]
    others = [
        lambda: translator.translate(TEXTS),
        lambda: translator.translate(TEXTS, max_length=20),
        lambda: translator.translate(TEXTS, no_loops=True),
    ]
    received = thread_probe.at_once(exports + others)
    assert received == [None] * len(exports) + [expected] * len(others)
