"""The exported file on another processor: ARM of 64 bits, emulated."""

import agreement
import arm_machine
import pytest
import word_reversal
from translate_texts import translated

from keras_vanilla import export

pytestmark = pytest.mark.full
SMALL = {"max_bytes": 160, "max_source_length": 40, "max_length": 59}
NEAR_TIE = 0.5  # two logits at 8 bits, as `verify` has it


@pytest.fixture(scope="module")
def files(trained_translator, tmp_path_factory):
    if reason := arm_machine.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("arm")
    files = agreement.exported(trained_translator, folder, **SMALL)
    files["beam"] = folder / "beam.tflite"
    settings = {**SMALL, "beam_size": 3, "quantize": None, "check": "structure"}
    export.tflite(trained_translator, files["beam"], **settings)
    return files


def compared(translator, path, count):
    """The translations of sentences here and there."""
    lines = word_reversal.english_sentences(count, seed=9, lengths=range(1, 9))
    (there,) = arm_machine.translated([path], lines)
    here = translated(path, lines)
    return agreement.Comparison(translator, lines, here, there)


@pytest.mark.parametrize("name, count", [("float32", 300), ("beam", 60)])
def test_float32_translates_as_on_this_processor(
    files, trained_translator, name, count
):
    comparison = compared(trained_translator, files[name], count)
    assert comparison.share == 1, str(comparison)


def test_int8_differs_in_near_ties_alone(files, trained_translator):
    comparison = compared(trained_translator, files["int8"], 300)
    assert agreement.is_enough("int8", comparison), str(comparison)
    gaps = [abs(gap) for *_, gap in comparison.different]
    assert max([0.0, *gaps]) <= NEAR_TIE, str(comparison)
