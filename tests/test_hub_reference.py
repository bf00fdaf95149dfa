import pytest

from keras_vanilla._hub_reference import HubReference, is_hub_reference

NAME = "Helsinki-NLP/opus-mt_tiny_eng-fra.v2"


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
