"""A model whose weights are not numbers is refused: it would translate to nothing."""

import keras
import numpy as np
import pytest

from keras_vanilla import Translator, export, interop
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.translation import score

TEXTS = ["three houses", "one two"]
REFUSED = r"weight '[^']*{}' must be finite numbers, but 1 of .* are not, such as {}"


def spoiled(translator, number=np.nan, which=-1):
    """A copy with one such number in one of its weights."""
    weights = translator.model.get_weights()
    weights[which].reshape(-1)[0] = number
    return translator.copy(weights)


@pytest.fixture(scope="module")
def without_numbers(trained_translator):
    return spoiled(trained_translator)


@pytest.fixture
def name(trained_translator):
    return trained_translator.model.weights[-1].name


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_file_is_refused(trained_translator, tmp_path, name, number):
    spoiled(trained_translator, number).save(tmp_path / "a.keras")
    with pytest.raises(ValueError, match=f"a.keras .*{REFUSED.format(name, number)}"):
        Translator.load(tmp_path / "a.keras")


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize(
    "translate",
    [
        lambda translator: translator.translate(TEXTS, on_too_long="split"),
        lambda translator: translator.translate_n_best(TEXTS, beam_size=2),
        lambda translator: translator.search([[5, 3]]),
        lambda translator: score(translator, ParallelCorpus(TEXTS, ["a", "b"])),
    ],
    ids=["split", "n_best", "search", "score"],
)
def test_translations_are_refused(
    without_numbers, name, translate, is_loaded, tmp_path
):
    if is_loaded:  # by Keras, which does not check weights
        without_numbers.save(tmp_path / "a.keras")
        without_numbers = keras.saving.load_model(tmp_path / "a.keras")
    with pytest.raises(ValueError, match=REFUSED.format(name, "nan")):
        translate(without_numbers)


@pytest.mark.parametrize(
    "write",
    [
        lambda translator, path: export.tflite(translator, f"{path}.tflite"),
        lambda translator, path: export.saved_model(translator, path),
        lambda translator, path: export.verify(translator, path, TEXTS),
        interop.to_ctranslate2,
        interop.to_marian,
    ],
    ids=["tflite", "saved_model", "verify", "ctranslate2", "marian"],
)
def test_exports_refuse_infinite_weights(without_numbers, tmp_path, name, write):
    (tmp_path / "exists").mkdir()
    with pytest.raises(ValueError, match=REFUSED.format(name, "nan")):
        write(without_numbers, tmp_path / "exists" / "new")
    assert not list((tmp_path / "exists").iterdir())


def test_checkpoint_is_refused(trained_translator):
    model = trained_translator.model
    state = interop.to_pytorch(model)
    name = next(name for name in state if name.endswith("linear1.weight"))
    state[name] = np.full_like(state[name], np.inf)
    with pytest.raises(ValueError, match="must be finite numbers, but .* as inf"):
        interop.from_pytorch(
            state,
            num_heads=model.num_heads,
            pad_id=model.pad_id,
            start_id=model.start_id,
            end_id=model.end_id,
        )
