"""The page that looks inside, in a browser: export/web/test drives it."""

import numpy as np
import pytest
import word_reversal
from web_setting import in_python, node, running

from keras_vanilla import export
from keras_vanilla.web.server import PageServer
from keras_vanilla.web.site import write_site

pytestmark = pytest.mark.full
SENTENCES, BEAMS = 50, 4
LIMITS = {"max_bytes": 131, "max_source_length": 29, "max_length": 59}


@pytest.fixture(scope="module")
def site(trained_translator, runtime, tmp_path_factory):
    """A site in float32, whose translator searches with beams."""
    folder = tmp_path_factory.mktemp("site") / "site"
    languages = {"source_language": "en", "target_language": "nl"}
    write_site(
        trained_translator,
        folder,
        runtime.parents[1],
        quantize=None,
        beam_size=BEAMS,
        name="Reversal",
        **LIMITS,
        **languages,
    )
    return folder


@pytest.fixture(scope="module")
def greedy(trained_translator, tmp_path_factory):
    """The one-call file that searches greedily."""
    path = tmp_path_factory.mktemp("greedy") / "greedy.tflite"
    settings = {"quantize": None, "check": "structure"}
    export.tflite(trained_translator, path, **settings, **LIMITS)
    return path


def weights_of(translator, text):
    """Keras's attention weights of a text and its greedy translation, by name."""
    model = translator.model
    (source,) = translator.encode([text])
    (translation,) = translator.translate([text])
    (target,) = translator.tokenizer.encode_target([translation])
    ids = {"source_ids": [source], "target_ids": [[model.start_id, *target[:-1]]]}
    arrays = {name: np.array(row, np.int32) for name, row in ids.items()}
    weights = model.attention_weights(arrays)
    return {name: np.asarray(value)[0].tolist() for name, value in weights.items()}


def test_weights_and_searches_are_those_of_the_files(
    setting, site, greedy, trained_translator, unseen_sentences, tmp_path
):
    texts = unseen_sentences[:SENTENCES]
    setting["sentences"] = [
        {"text": text, "greedy": one, "beams": several}
        for (text, one), (_, several) in zip(
            in_python(greedy, texts),
            in_python(site / "translator.tflite", texts),
            strict=True,
        )
    ]
    for sentence in setting["sentences"]:
        sentence["weights"] = weights_of(trained_translator, sentence["text"])
    setting["beams"] = BEAMS
    with running(server := PageServer(site)):
        setting["urls"] = {"site": server.url}
        node("inside_agrees", setting, tmp_path)


def test_a_reader_finds_out_how_a_translation_came_about(setting, site, tmp_path):
    names = zip(word_reversal.ENGLISH, word_reversal.DUTCH, strict=True)
    setting["partners"] = dict(names)
    with running(server := PageServer(site)):
        setting["urls"] = {"site": server.url}
        node("inside", setting, tmp_path)
