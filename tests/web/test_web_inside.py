"""The page that looks inside, in a browser: export/web/test drives it."""

import json
import os
import random
import struct
import subprocess

import numpy as np
import pytest
import word_reversal
from keras import ops
from web_setting import FOLDER, NEEDS_NODE, in_python, node, running, served

from keras_vanilla import export
from keras_vanilla.decoding import beam_search
from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.decoding.hypothesis_end import until_end
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.export.signatures import vocabulary_entry
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.web.runtime import PAGE
from keras_vanilla.web.server import PageServer
from keras_vanilla.web.site import write_site

pytestmark = pytest.mark.full
SENTENCES, BEAMS = 50, 4
EXAMPLES = ["three red house", "two three", "three blue house"]
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
        examples=EXAMPLES,
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


def test_weights_and_searches_equal_files(
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


@pytest.mark.parametrize("program", ["inside", "tour"])
def test_page_explains_translation(setting, site, tmp_path, program):
    names = zip(word_reversal.ENGLISH, word_reversal.DUTCH, strict=True)
    setting["partners"] = dict(names)
    setting["examples"] = EXAMPLES
    with running(server := PageServer(site)):
        setting["urls"] = {"site": server.url}
        node(program, setting, tmp_path)


def test_pages_begin_with_example(setting, site, runtime, echo, tmp_path):
    setting["examples"] = in_python(site / "translator.tflite", EXAMPLES)
    with running(server := PageServer(site)), served(echo, runtime) as plain:
        setting["urls"] = {"site": server.url, "echo": plain}
        node("opening", setting, tmp_path)


def test_picture_of_guide_is_made(browser, site, tmp_path):
    picture = tmp_path / "look_inside.png"
    with running(server := PageServer(site)):
        command = ["node", FOLDER / "picture.mjs", server.url, picture, "drie"]
        environment = os.environ | {"KERAS_VANILLA_CHROMIUM": browser}
        subprocess.run(command, env=environment, check=True, timeout=120)
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (1120, 1340)


class Table(SearchedModel):
    """A model of a table: logits by the number of tokens so far and the last one."""

    pad_id, start_id, end_id, max_length = 0, 2, 3, 60

    def __init__(self, seed, size=12):
        logits = np.random.default_rng(seed).normal(0, 2, (15, size, size))
        self.logits = logits.round(3).astype("float32")
        self.logits[:, :, [self.pad_id, self.start_id]] = -99.0  # never chosen
        self.target_vocabulary_size = size

    def encode(self, source_ids):
        return ops.zeros((1, 1, 1)), ops.ones((1, 1), "bool")

    def start_cache(self, memory, memory_mask, length):
        return {}

    def decode_step(self, ids, index, cache):
        return ops.take(ops.take(self.logits, index, axis=0), ids, axis=0), cache


def table_search(seed):
    """A search of `beam_search` in a table, and what it finds."""
    rng = random.Random(seed)
    model, beams, limit = Table(seed), rng.randint(1, 6), rng.randint(1, 14)
    length_penalty = rng.choice([0.0, 0.6, 1.0])
    ids, scores = beam_search(
        model, [[4]], beam_size=beams, length_penalty=length_penalty, max_length=limit
    )
    found = zip(np.asarray(ids)[0], np.asarray(scores)[0], strict=True)
    return {
        "table": model.logits.tolist(),
        "beams": beams,
        "limit": limit,
        "lengthPenalty": length_penalty,
        "expected": [
            {"ids": until_end(row.tolist(), model), "score": float(score)}
            for row, score in found
            if score > -np.inf
        ],
    }


@pytest.fixture(scope="module")
def byte_tokenizer():
    """A tokenizer that has a piece of each byte for what it does not know."""
    lines = ["Neun Enten fahren Rad.", "Eine Katze schläft, und träumt."] * 9
    return Tokenizer.train(lines=lines, vocabulary_size=310)


def nucleus(seed):
    """Logits, and the ids that are the most probable ones and reach `topP` together."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, 40).round(3)
    top_p = float(rng.choice([0.1, 0.5, 0.9, 0.99, 1.0]))
    order = np.argsort(-logits)
    shares = np.exp(logits[order]) / np.exp(logits).sum()
    count = 1 + int((np.cumsum(shares)[:-1] < top_p).sum())
    kept = sorted(order[:count].tolist())
    return {"logits": logits.tolist(), "topP": top_p, "kept": kept}


def decoded(tokenizer, seed):
    rng = random.Random(seed)
    text = "".join(rng.choices("aeinrst HKuü.ß猫🙂", k=12))
    ids = tokenizer.encode_target([text])[0]
    return {"ids": ids, "text": tokenizer.decode([ids])[0]}


@NEEDS_NODE
def test_modules_equal_python(byte_tokenizer, tmp_path):
    setting = {
        "page": str(PAGE),
        "startId": Table.start_id,
        "endId": Table.end_id,
        "searches": [table_search(seed) for seed in range(60)],
        "vocabulary": json.loads(vocabulary_entry(byte_tokenizer)),
        "decoded": [decoded(byte_tokenizer, seed) for seed in range(200)],
        "nuclei": [nucleus(seed) for seed in range(60)],
        "alignmentLayers": [alignment_layer(layers) for layers in range(1, 13)],
    }
    assert any("猫" in each["text"] for each in setting["decoded"])
    node("inside_modules", setting, tmp_path)
