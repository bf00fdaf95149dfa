"""The inputs are the same at each call, and are what their kinds say."""

import re
from collections import Counter

import pytest

from keras_vanilla.probing import made_probes
from keras_vanilla.probing.inputs import SENTENCES

GERMAN = SENTENCES["de"]
THINGS = {
    "URL": r"https://www\.\w+\.org/\w+/\d+\?id=\w",
    "e-mail": r"\w+\.\d\d@\w+\.org",
    "number": r"\d{4,8}",
    "date": r"\d{4}-\d\d-\d\d",
    "name": r"\w+ \w+",
}


def of_kind(kind, sentences=GERMAN, count=50):
    return [probe for probe in made_probes(sentences, count) if probe.kind == kind]


def test_the_same_at_each_call():
    assert made_probes(GERMAN) == made_probes(GERMAN)


@pytest.mark.parametrize("language", SENTENCES)
def test_as_many_of_each_kind(language):
    counts = Counter(probe.kind for probe in made_probes(SENTENCES[language], 7))
    assert len(counts) == 18
    assert set(counts.values()) == {7}


@pytest.mark.parametrize("kind", THINGS)
def test_things_are_of_their_kind_and_in_the_text(kind):
    probes = of_kind(kind)
    assert all(re.fullmatch(THINGS[kind], probe.kept) for probe in probes)
    assert all(probe.kept in probe.text for probe in probes)
    assert len({probe.kept for probe in probes}) > 25


def test_the_point_of_a_sentence_is_no_part_of_an_address():
    for probe in of_kind("URL") + of_kind("e-mail"):
        assert probe.text.endswith(f"{probe.kept} .")


def test_noise_keeps_its_clean_text():
    probe = of_kind("upper case")[0]
    assert probe.text == "EIN MANN LIEST EINE ZEITUNG."
    assert probe.clean == "Ein Mann liest eine Zeitung."
    assert of_kind("title case")[0].text == "Ein Mann Liest Eine Zeitung."
    assert of_kind("no punctuation")[0].text == "Ein Mann liest eine Zeitung"
    assert of_kind("double spaces")[0].text == "Ein  Mann  liest  eine  Zeitung."
    for probe in of_kind("typos"):
        assert probe.text != probe.clean
        assert abs(len(probe.text) - len(probe.clean)) <= 1


def test_lengths():
    assert all(len(probe.text.split()) == 1 for probe in of_kind("one word"))
    assert max(len(probe.text.split()) for probe in of_kind("long")) > 150
    repeated = of_kind("repeated")[9].text.split()
    assert len(repeated) == 12
    assert len(set(repeated)) == 1
    assert not any(probe.text.strip() for probe in of_kind("empty"))
    assert not re.search(r"\w", "".join(probe.text for probe in of_kind("symbols")))


@pytest.mark.parametrize("sentences", [[], ["Word."], [""]])
def test_sentences_are_needed(sentences):
    with pytest.raises(ValueError, match="a sentence of two words"):
        made_probes(sentences)


def test_a_count_is_needed():
    with pytest.raises(ValueError, match="`count` must be at least 1. Received: 0"):
        made_probes(GERMAN, 0)


def test_sentences_without_a_letter_to_change():
    probes = of_kind("typos", ["1 2 3 4"])
    assert {probe.text for probe in probes} == {"1 2 3 4"}
