"""Models of the hub, without a hub and its package."""

import pytest

from keras_vanilla import Translator, pipeline
from keras_vanilla._hub_reference import HubReference, is_hub_reference
from keras_vanilla.cli.console import is_keras_file
from keras_vanilla.interop import hub, read_translator

MODEL = HubReference("owner/model")
NAME = "Helsinki-NLP/opus-mt_tiny_eng-fra.v2"


@pytest.mark.parametrize(
    "name, listed, has_codes, expected",
    [
        ("opus-mt-de-en", ["en", "de"], False, ("de", "en")),
        ("opus-mt-de-en", None, False, ("de", "en")),
        ("opus-mt-de-en", ["fr", "en"], False, (None, None)),
        ("opus-mt-de-en", [{"de": 1}, "en"], False, (None, None)),
        ("opus-mt-no-de", [False, "de"], False, ("no", "de")),  # YAML's false
        ("opus-mt-tc-big-en-pt", ["en", "pt", "pt_br"], True, ("en", None)),
        ("opus-mt_tiny_eng-fra", ["eng", "fra"], False, ("eng", "fra")),
        ("opus-mt-mul-en", ["af", "ar", "en", "mul"], False, (None, "en")),
        ("opus-mt-en-gmw", ["en", "nl", "af", "gmw"], True, ("en", None)),
        ("opus-mt-en-ROMANCE", None, True, (None, None)),
        ("opus-mt-tc-bible-big-deu_eng_fra-mul", "mul", True, (None, None)),
        ("opus-mt-de-en-finetuned", ["de", "en"], False, (None, None)),
        ("captions", ["de", "en"], False, (None, None)),
    ],
)
def test_languages_are_stated_where_name_and_card_agree(
    name, listed, has_codes, expected
):
    assert hub._languages(name, listed, has_codes) == expected


SAFE, PICKLE = "model.safetensors", "pytorch_model.bin"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


@pytest.mark.parametrize(
    "names, expected",
    [
        ([PICKLE, SAFE], [SAFE]),
        ([PICKLE, f"{SAFE}.index.json", *SHARDS], [f"{SAFE}.index.json", *SHARDS]),
        ([PICKLE, "tf_model.h5"], [PICKLE]),
    ],
)
def test_safetensors_come_before_pickles(names, expected):
    assert hub._needed(MODEL, [*names, *hub.REQUIRED]) == [*hub.REQUIRED, *expected]


@pytest.mark.parametrize("open_model", [Translator.load, read_translator])
def test_reference_is_not_path(open_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub:model").touch()
    with pytest.raises(ValueError, match="OWNER/NAME.*Received: hub:model"):
        open_model("hub:model")
    with pytest.raises(ValueError, match="hub:model"):
        open_model("./hub:model")


def test_reference_with_suffix_is_not_file():
    assert is_keras_file("hub:owner/model.tflite")
    assert not is_keras_file("./hub:owner/model.tflite")


@pytest.mark.parametrize("revision", [None, "main", "v1.0", "refs/pr/3", "a" * 40])
def test_reference_round_trip(revision):
    reference = HubReference(NAME, revision)
    assert str(reference) == f"hub:{NAME}" + (f"@{revision}" if revision else "")
    assert HubReference.parse(str(reference)) == reference
    assert HubReference.parse(str(reference).removeprefix("hub:")) == reference


@pytest.mark.parametrize(
    "text",
    ["", "hub:", "hub:b", "hub:/b", "hub:a/", "hub:a/b/c", "hub:a/b@", "a/b c", "é/b"]
    + ["hub:hub:a/b", "hub:a/b@v 1", "https://huggingface.co/a/b"],
)
def test_other_text_is_refused(text):
    message = f"OWNER/NAME or OWNER/NAME@REVISION, such as .*Received: {text}$"
    with pytest.raises(ValueError, match=message):
        HubReference.parse(text)


@pytest.mark.parametrize("path", ["a/b", "./hub:a/b", "hub", "translator.keras"])
def test_path_is_not_reference(path):
    assert not is_hub_reference(path)


def test_pipeline_has_english_to_french():
    translator = pipeline("translation_en_to_fr")
    texts = ["How old are you?", "My brother has two black cats."]
    expected = ["Quel âge as-tu ?", "Mon frère a deux chats noirs."]
    assert translator(texts[0]) == [{"translation_text": expected[0]}]
    received = translator(texts, max_length=40, num_beams=2, batch_size=2)
    assert received == [{"translation_text": text} for text in expected]
    assert translator([]) == []
