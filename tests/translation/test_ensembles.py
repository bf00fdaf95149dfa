"""Several translators as one."""

import numpy as np
import pytest

from keras_vanilla import Translator, export
from keras_vanilla.bulk import open_line_translator
from keras_vanilla.interop import to_ctranslate2, to_marian
from keras_vanilla.models import Ensemble
from keras_vanilla.tokenizer import CharacterTokenizer
from keras_vanilla.translation import ensemble

TEXTS = ["ein kleiner Hund", "drei"]


@pytest.fixture(scope="module")
def both(small_translator):
    tokenizer, model = small_translator.tokenizer, small_translator.model
    weights = [0.9 * weight for weight in model.get_weights()]
    return ensemble([small_translator, Translator(tokenizer, model.copy(weights))])


@pytest.fixture(scope="module")
def translations(both):
    return both.translate(TEXTS)


def test_one_translator_of_two(both, translations, tmp_path):
    assert isinstance(both.model, Ensemble) and len(both.model.models) == 2
    assert len(translations) == len(TEXTS)
    both.save(tmp_path / "both.keras")
    loaded = Translator.load(tmp_path / "both.keras")
    assert isinstance(loaded.model, Ensemble) and len(loaded.model.models) == 2
    weights = loaded.get_weights(), both.get_weights()
    for received, saved in zip(*weights, strict=True):
        np.testing.assert_array_equal(received, saved)


@pytest.mark.full
def test_the_tokenizer_may_be_loaded_twice(small_translator, tmp_path):
    small_translator.save(tmp_path / "one.keras")
    both = ensemble([small_translator, Translator.load(tmp_path / "one.keras")])
    assert both.translate(TEXTS) == small_translator.translate(TEXTS)


def test_other_tokenizers_are_refused(trained_translator):
    size = trained_translator.tokenizer.vocabulary_size
    characters = CharacterTokenizer([chr(0x4E00 + i) for i in range(size - 4)])
    other = Translator(characters, trained_translator.model)
    with pytest.raises(ValueError, match="translator 2 with another tokenizer"):
        ensemble([trained_translator, other])
    with pytest.raises(ValueError, match="at least one translator"):
        ensemble([])


@pytest.mark.full
def test_a_file_of_one_model_is_refused_and_a_saved_model_has_both(
    both, translations, tmp_path
):
    writers = (
        lambda: export.tflite(both, tmp_path / "both.tflite"),
        lambda: to_ctranslate2(both, tmp_path / "server"),
        lambda: to_marian(both, tmp_path / "marian"),
    )
    for write in writers:
        with pytest.raises(ValueError, match="one Transformer.* an ensemble of 2$"):
            write()
    assert not list(tmp_path.iterdir())
    export.saved_model(both, tmp_path / "saved")
    found = open_line_translator(tmp_path / "saved")(TEXTS)
    assert [line.text for line in found] == translations
