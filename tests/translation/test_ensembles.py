"""Several translators as one."""

import pytest

from keras_vanilla import Translator, export
from keras_vanilla.bulk import open_line_translator
from keras_vanilla.interop import to_ctranslate2, to_marian
from keras_vanilla.models import Ensemble
from keras_vanilla.tokenizer import CharacterTokenizer
from keras_vanilla.translation import ensemble

TEXTS = ["ein kleiner Hund", "drei"]


def test_one_translator_of_two(trained_translator, tmp_path):
    tokenizer, model = trained_translator.tokenizer, trained_translator.model
    weights = [0.9 * weight for weight in model.get_weights()]
    both = ensemble([trained_translator, Translator(tokenizer, model.copy(weights))])
    assert isinstance(both.model, Ensemble) and len(both.model.models) == 2
    translations = both.translate(TEXTS, beam_size=3)
    both.save(tmp_path / "both.keras")
    loaded = Translator.load(tmp_path / "both.keras")
    assert loaded.translate(TEXTS, beam_size=3) == translations


def test_the_tokenizer_may_be_loaded_twice(trained_translator, trained_file):
    same = Translator.load(trained_file)
    both = ensemble([trained_translator, same])
    assert both.translate(TEXTS) == trained_translator.translate(TEXTS)


def test_other_tokenizers_are_refused(trained_translator):
    size = trained_translator.tokenizer.vocabulary_size
    characters = CharacterTokenizer([chr(0x4E00 + i) for i in range(size - 4)])
    other = Translator(characters, trained_translator.model)
    with pytest.raises(ValueError, match="translator 2 with another tokenizer"):
        ensemble([trained_translator, other])
    with pytest.raises(ValueError, match="at least one translator"):
        ensemble([])


def test_a_file_of_one_model_is_refused_and_a_saved_model_has_both(
    trained_translator, tmp_path
):
    tokenizer, model = trained_translator.tokenizer, trained_translator.model
    weights = [0.9 * weight for weight in model.get_weights()]
    both = ensemble([trained_translator, Translator(tokenizer, model.copy(weights))])
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
    assert [line.text for line in found] == both.translate(TEXTS)
