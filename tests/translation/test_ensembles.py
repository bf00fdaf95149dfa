"""Several translators as one."""

import pytest

from keras_vanilla import Translator
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
