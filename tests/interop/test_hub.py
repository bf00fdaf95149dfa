"""Models of the hub: what needs neither a hub nor its package."""

import json

import pytest

from keras_vanilla import Translator
from keras_vanilla._hub_reference import HubReference
from keras_vanilla.cli.console import is_keras_file
from keras_vanilla.interop import hub, read_translator

MODEL = HubReference("owner/model")


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


@pytest.mark.parametrize(
    "card, license_",
    [
        ({"license": "cc-by-4.0"}, "cc-by-4.0"),
        ({"license": "other", "license_name": "of-the-lab"}, "of-the-lab"),
        ({"license": "other"}, "other"),
        ({"license": "\ud834"}, None),
        ({"license": ["mit", "apache-2.0"]}, None),
        ({}, None),
    ],
)
def test_the_license_is_that_of_the_card(card, license_):
    about = hub._about(HubReference("a/b", "c" * 40), card, False)
    assert about.model_license == license_
    assert about.converted_from == f"hub:a/b@{'c' * 40}" and about.name == "b"


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


@pytest.mark.parametrize(
    "config, received",
    [
        ({"model_type": "t5", "architectures": ["T5Model"]}, "T5Model"),
        ({"model_type": "bert"}, "'bert'"),
        ({"add_source_bos": False}, "None"),  # of CTranslate2
    ],
)
def test_another_architecture_is_named(config, received, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    message = (
        f"hub:owner/model must be a MarianMTModel.*Received: {received}; .*package"
    )
    with pytest.raises(ValueError, match=message):
        hub._check_architecture(MODEL, tmp_path)


@pytest.mark.parametrize("open_model", [Translator.load, read_translator])
def test_a_reference_is_not_a_path(open_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub:model").touch()
    with pytest.raises(ValueError, match="OWNER/NAME.*Received: hub:model"):
        open_model("hub:model")
    with pytest.raises(ValueError, match="hub:model"):
        open_model("./hub:model")


def test_a_name_that_ends_as_a_file_is_a_model_of_the_hub():
    assert is_keras_file("hub:owner/model.tflite")
    assert not is_keras_file("./hub:owner/model.tflite")
