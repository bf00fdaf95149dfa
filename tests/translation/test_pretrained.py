"""The translators that are installed with the package."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

from keras_vanilla.bulk import open_line_translator
from keras_vanilla.export import read_description
from keras_vanilla.pretrained import FOLDER, NAMES, pretrained_file
from keras_vanilla.translation import Translator

CORPUS = Path(__file__).resolve().parents[2] / "shared/data/tatoeba-en-fr"
FORMS = Path(__file__).parents[1] / "benchmarks/probe_en_fr.tsv"
CARD = FOLDER / "en-fr" / "README.md"
SENTENCES = {
    "The animal didn't cross the street because it was too tired.": (
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."
    ),
    "She told me that you were sick.": "Elle m'a dit que tu étais malade.",
    "My brother has two black cats.": "Mon frère a deux chats noirs.",
    "They bought a small house near the sea.": (
        "Ils ont acheté une petite maison près de la mer."
    ),
    "The train arrives at seven o'clock.": "Le train arrive à sept heures.",
    "Her dog is afraid of cats.": "Son chien a peur des chats.",
    "You should see a doctor before the holidays.": (
        "Tu devrais voir un médecin avant les vacances."
    ),
    "She said: “I am tired.”": "Elle a dit : « Je suis fatigué. »",
    "My rent is €448 a month.": "Mon loyer est de 448 € par mois.",
    "We are going to the beach tomorrow.": "Nous allons à la plage demain.",
}
BLEU = 41.6  # on the test set with 5 beams, as the card says


@pytest.fixture(scope="module")
def translator():
    return Translator.from_preset("en-fr")


def test_each_name_has_its_files_and_no_other_is_there():
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(NAMES)
    for name in NAMES:
        files = {path.name for path in (FOLDER / name).iterdir()}
        assert files == {"README.md", "translator.keras", "translator.tflite"}


def test_files_are_small():
    files = [pretrained_file("en-fr", suffix) for suffix in (".keras", ".tflite")]
    assert sum(file.stat().st_size for file in files) < 10 * 2**20


def test_sentences_are_translated(translator):
    outputs = translator.translate(list(SENTENCES), beam_size=4)
    assert outputs == list(SENTENCES.values())


def test_file_translates_them_equally():
    translate = open_line_translator(str(pretrained_file("en-fr", ".tflite")))
    results = translate(list(SENTENCES))
    assert [result.text for result in results] == list(SENTENCES.values())


def test_file_translates_what_people_type_as_its_card_says():
    """Prices, dates, measures, names: 15 sentences of each, one may round otherwise."""
    rows = [line.split("\t") for line in FORMS.read_text(encoding="utf-8").splitlines()]
    results = open_line_translator(str(pretrained_file("en-fr", ".tflite")))(
        [sentence for _, sentence, _ in rows]
    )
    right = Counter()
    for (kind, _, pattern), result in zip(rows, results, strict=True):
        right[kind] += bool(re.search(pattern.replace(" ", r"\s?"), result.text))
    cells = re.findall(r"([a-z][a-z ]*) (\d+) of 15", CARD.read_text(encoding="utf-8"))
    on_card = {kind: int(count) for kind, count in cells}
    assert set(on_card) == {kind for kind, _, _ in rows}
    assert not {k: right[k] for k, count in on_card.items() if right[k] < count - 1}


def test_both_files_describe_themselves(translator):
    for about in (
        translator.about,
        read_description(pretrained_file("en-fr", ".tflite")),
    ):
        assert (about.source_language, about.target_language) == ("en", "fr")
        assert "Tatoeba" in about.data
        assert "CC BY 2.0" in about.data_license
        assert len(about.examples) == 6


def test_card_is_that_of_the_file():
    card = CARD.read_text(encoding="utf-8")
    content = pretrained_file("en-fr", ".tflite").read_bytes()
    assert hashlib.sha256(content).hexdigest() in card
    assert f"{len(content):,} bytes" in card
    assert f"{BLEU:.1f} BLEU" in card


@pytest.mark.full
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus ../shared/data is missing")
def test_score_is_that_of_the_card(translator):
    from keras_vanilla.data import ParallelCorpus
    from keras_vanilla.translation import score

    corpus = ParallelCorpus.from_files(CORPUS / "test.en", CORPUS / "test.fr")
    result = score(translator, corpus, beam_size=5)
    assert result.bleu == pytest.approx(BLEU, abs=0.3)
    assert not result.unfinished
