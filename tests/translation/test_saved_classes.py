"""A translator comes back from its file with the classes that it was made of."""

import zipfile

import keras
import numpy as np
import pytest

from keras_vanilla import Transformer, Translator
from keras_vanilla.translation import saved_classes


@keras.saving.register_keras_serializable("saved_classes_test")
class HalfLoud(Transformer):
    """A subclass with an argument of its own, which changes its logits."""

    def __init__(self, *args, loudness=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.loudness = loudness

    def call(self, inputs, training=None, mask=None):
        return self.loudness * super().call(inputs, training=training, mask=mask)

    def get_config(self):
        return {**super().get_config(), "loudness": self.loudness}


class Unregistered(Transformer):
    pass


class UnregisteredTranslator(Translator):
    pass


@pytest.fixture(scope="module")
def half_loud(trained_translator):
    """The trained translator, in a subclass of Transformer."""
    trained = trained_translator.model
    model = HalfLoud(**without_name(trained), loudness=0.5)
    model.set_weights(trained.get_weights())
    return Translator(trained_translator.tokenizer, model)


def without_name(model):
    return {k: v for k, v in model.get_config().items() if k != "name"}


def test_subclass_of_transformer_is_loaded(half_loud, trained_translator, tmp_path):
    half_loud.save(tmp_path / "t.keras")
    expected = trained_translator.model.get_weights()
    for load in (Translator.load, keras.saving.load_model):
        model = load(tmp_path / "t.keras").model
        assert type(model) is HalfLoud and model.loudness == 0.5
        for received, saved in zip(model.get_weights(), expected, strict=True):
            np.testing.assert_array_equal(received, saved)


@pytest.mark.full
def test_copies_keep_the_subclass(half_loud):
    assert type(half_loud.copy().model) is HalfLoud
    config = {**half_loud.model.get_config(), "dtype": "bfloat16"}
    low = Translator(half_loud.tokenizer, HalfLoud.from_config(config))
    in_float32 = low.in_float32().model
    assert type(in_float32) is HalfLoud and in_float32.loudness == 0.5
    assert in_float32.compute_dtype == "float32"


def test_save_refuses_unregistered_classes(trained_translator, tmp_path):
    tokenizer, model = trained_translator.tokenizer, trained_translator.model
    unregistered = Unregistered.from_config(model.get_config())
    for translator in (
        Translator(tokenizer, unregistered),
        UnregisteredTranslator(tokenizer, model),
    ):
        with pytest.raises(ValueError, match="Unregistered.*Register.*@keras.saving"):
            translator.save(tmp_path / "t.keras")
    assert not list(tmp_path.iterdir())


def test_load_names_the_class_whose_module_is_not_imported(
    half_loud, tmp_path, monkeypatch
):
    half_loud.save(tmp_path / "t.keras")
    registry = keras.saving.get_custom_objects()
    name = saved_classes.class_name(half_loud.model)
    monkeypatch.delitem(registry, name)
    with pytest.raises(ValueError, match=f"{name}.*import the module") as refused:
        Translator.load(tmp_path / "t.keras")
    assert "\n" not in str(refused.value)


def rewritten(source, path, old, new):
    """A saved file with other words in its configuration."""
    with zipfile.ZipFile(source) as read, zipfile.ZipFile(path, "w") as written:
        for name in read.namelist():
            written.writestr(name, read.read(name).replace(old, new))
    return path


def test_file_that_names_no_class_holds_a_transformer(trained_file, tmp_path):
    path = rewritten(
        trained_file, tmp_path / "old.keras", b'"model_class"', b'"not_known"'
    )
    assert type(Translator.load(path).model) is Transformer


def test_load_refuses_an_ensemble_by_name(trained_file, tmp_path):
    names = b"keras_vanilla>Transformer", b"keras_vanilla>Ensemble"
    path = rewritten(trained_file, tmp_path / "both.keras", *names)
    expected = "both.keras .*Ensemble was removed in 0.8.0; keras_vanilla 0.7.0 reads"
    with pytest.raises(ValueError, match=expected):
        Translator.load(path)
