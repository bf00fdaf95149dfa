"""Any thread may translate at any time, also before anything has been translated."""

import pytest
from child_process import run

from keras_vanilla import Translator, export
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.translation import score

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


def calls(translator):
    corpus = ParallelCorpus(TEXTS[:2], ["drie huizen", "een twee"])
    return [
        lambda: translator.translate(TEXTS),
        lambda: translator.translate(TEXTS[:1], beam_size=2, on_too_long="split"),
        lambda: translator.translate_n_best(TEXTS[:2], beam_size=3),
        lambda: list(translator.stream(TEXTS[::-1], no_loops=True)),
        lambda: translator.search([[5, 3]]).tolist(),
        lambda: translator.align(TEXTS[:1], ["drie huizen"]),
        lambda: score(translator, corpus).bleu,
    ]


@pytest.mark.filterwarnings("ignore:.* translations reached:UserWarning")
@pytest.mark.full
def test_new_translator_translates_in_many_threads(small_translator, tmp_path):
    small_translator.save(tmp_path / "small.keras")
    one, other = (Translator.load(tmp_path / "small.keras") for _ in range(2))
    expected = [call() for call in calls(one)]
    received = thread_probe.at_once(calls(other))
    assert received.pop() == pytest.approx(expected.pop())
    for ours, theirs in zip(received.pop(2), expected.pop(2), strict=True):
        assert ours == [(text, pytest.approx(score)) for text, score in theirs]
    assert received == expected


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
