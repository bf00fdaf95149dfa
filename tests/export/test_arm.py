"""The exported file on other processors: ARM of 64 and of 32 bits, emulated."""

import agreement
import arm_machines
import pytest
import word_reversal
from translate_texts import translated

from keras_vanilla import export

pytestmark = pytest.mark.full
SMALL = {"max_bytes": 160, "max_source_length": 40, "max_length": 59}
NEAR_TIE = 0.5  # two logits at 8 bits, as `verify` has it


@pytest.fixture(scope="module", params=arm_machines.MACHINES)
def machine(request):
    machine = arm_machines.MACHINES[request.param]()
    if reason := machine.why_not():
        pytest.skip(reason)
    return machine


@pytest.fixture(scope="module")
def files(machine, trained_translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    settings = {**SMALL, **machine.export_settings}
    files = agreement.exported(trained_translator, folder, **settings)
    files["beam"] = folder / "beam.tflite"
    settings = {**settings, "beam_size": 3, "quantize": None, "check": "structure"}
    export.tflite(trained_translator, files["beam"], **settings)
    return files


def compared(translator, machine, path, count):
    """The translations of sentences here and there."""
    lines = word_reversal.english_sentences(count, seed=9, lengths=range(1, 9))
    (there,) = machine.translated([path], lines)
    here = translated(path, lines)
    return agreement.Comparison(translator, lines, here, there)


@pytest.mark.parametrize("name, count", [("float32", 300), ("beam", 60)])
def test_float32_translates_as_on_this_processor(
    files, machine, trained_translator, name, count
):
    comparison = compared(trained_translator, machine, files[name], count)
    assert comparison.share == 1, str(comparison)


def test_int8_differs_in_near_ties_alone(files, machine, trained_translator):
    comparison = compared(trained_translator, machine, files["int8"], 300)
    assert agreement.is_enough("int8", comparison), str(comparison)
    gaps = [abs(gap) for *_, gap in comparison.different]
    assert max([0.0, *gaps]) <= NEAR_TIE, str(comparison)
