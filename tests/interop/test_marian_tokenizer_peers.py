"""Marian's tokenizer beside Hugging Face's, in TensorFlow graphs and `.tflite` files.

On models learnt here, and on the files of a published model where they are there.
"""

import random
from pathlib import Path

import numpy as np
import pytest
from marian_texts import KINDS, SPECIAL, TEXTS, learn_models, write_files
from tokenizer_files import decoder_in_litert, encoder_in_litert

from keras_vanilla._operators import Operators
from keras_vanilla.export.phone_operators import DynamicShapes
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.interop.marian_tokenizer import tokenizer_from_marian

pytestmark = pytest.mark.full
transformers = pytest.importorskip("transformers", reason="transformers is missing")

of_both_shapes = pytest.mark.parametrize(
    "operators", [DynamicShapes(), Operators()], ids=["dynamic", "fixed"]
)
PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "opus-mt-en-mg"
MAX_BYTES, MAX_IDS = 512, 256
LETTERS = "abc éñ¢मल门哈🙂👍\u0300\u200d\u00a0\t\n▁ЖжΧλ가다ﬁ½①IsTheSandm' .,!?<>/"


@pytest.fixture(scope="module", params=[*KINDS, "published"])
def folder(request, tmp_path_factory):
    if request.param == "published":
        if not PUBLISHED.exists():
            pytest.skip("the files of the published model are not here")
        return PUBLISHED
    path = tmp_path_factory.mktemp("marian") / "x"
    return write_files(path, learn_models(), request.param)


@pytest.fixture(scope="module")
def pair(folder):
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    return tokenizer_from_marian(folder), theirs


@pytest.fixture(scope="module")
def texts():
    """Odd texts, and any characters."""
    chance = random.Random(0)
    drawn = ["".join(chance.choices(LETTERS, k=n % 31)) for n in range(2000)]
    drawn += ["".join(chance.choices(CHARACTERS, k=n % 23)) for n in range(4000)]
    return TEXTS + drawn


@pytest.fixture(scope="module")
def some(folder, texts):
    """All odd texts, and a part of the others for a graph, which is slow."""
    return TEXTS + texts[len(TEXTS) :: 5 if folder == PUBLISHED else 25]


CHARACTERS = [chr(n) for n in range(1, 0x1FFFF) if not 0xD800 <= n < 0xE000]


def rows_of(tokenizer, texts):
    """Ids of texts, and ids at random."""
    chance = random.Random(0)
    size = tokenizer.target_vocabulary_size
    drawn = [[chance.randrange(size) for _ in range(n % 17)] for n in range(2000)]
    rows = [*drawn, *(row[:-1] for row in tokenizer.encode_target(texts[:3000]))]
    return [[id_ for id_ in row if id_ != tokenizer.end_id] for row in rows]


def test_ids_are_those_of_transformers(pair, texts):
    ours, theirs = pair
    assert ours.encode(texts) == theirs(texts)["input_ids"]
    assert ours.encode_target(texts) == theirs(text_target=texts)["input_ids"]


def test_texts_are_those_of_transformers(pair, texts):
    ours, theirs = pair
    rows = rows_of(ours, texts)
    expected = [theirs.decode(row, skip_special_tokens=True) for row in rows]
    assert ours.decode(rows) == expected


@pytest.mark.parametrize("text", SPECIAL)
def test_special_tokens_in_a_text_are_text(pair, text):
    """The one difference: to Hugging Face they are special ids."""
    ours, theirs = pair
    special = {ours.pad_id, ours.end_id, ours.unknown_id}
    assert special & set(theirs(text)["input_ids"][:-1])
    assert not {ours.pad_id, ours.end_id} & set(ours.encode([text])[0][:-1])
    parts = theirs(text, split_special_tokens=True)["input_ids"]
    assert ours.encode([text]) == [parts]


@of_both_shapes
def test_litert_gives_the_ids(pair, some, operators):
    tokenizer, _ = pair
    graph = TokenizerGraph(tokenizer, MAX_BYTES, MAX_IDS)
    encode = encoder_in_litert(graph.encode, operators)
    for text, ids in zip(some, tokenizer.encode(some), strict=True):
        text = text.rstrip("\0")
        if len(text.encode()) <= MAX_BYTES and len(ids) <= MAX_IDS:
            assert encode(text) == ids, text


@of_both_shapes
def test_litert_gives_the_ids_with_a_target_language(tmp_path, operators):
    tokenizer = tokenizer_from_marian(write_files(tmp_path / "x", learn_models()))
    french = tokenizer.with_target_language("fra")
    graph = TokenizerGraph(french, MAX_BYTES, MAX_IDS)
    encode = encoder_in_litert(graph.encode, operators)
    assert [encode(text) for text in TEXTS] == french.encode(TEXTS)


@of_both_shapes
def test_litert_gives_the_texts(pair, some, operators):
    tokenizer, _ = pair
    graph = TokenizerGraph(tokenizer, max_target_ids=MAX_IDS)
    decode = decoder_in_litert(graph.decode, tokenizer.pad_id, operators)
    rows = [row for row in rows_of(tokenizer, some)[::3] if len(row) <= MAX_IDS]
    rows += [[*row, tokenizer.end_id, 5] for row in rows[::9]]
    assert [decode(row) for row in rows] == tokenizer.decode(rows)


def test_tensorflow_text_gives_the_ids_and_texts(pair, texts, some):
    """Of equal scores it may take another segmentation than `sentencepiece`."""
    tokenizer, _ = pair
    graph = tokenizer.source_graph(some).to_list()
    pairs = zip(graph, tokenizer.encode(some), strict=True)
    others = [(a, b) for a, b in pairs if a != b]
    assert len(others) < 3 and all(sorted(a) == sorted(b) for a, b in others)
    rows = rows_of(tokenizer, texts)
    padded = np.full((len(rows), max(map(len, rows))), tokenizer.pad_id, "int32")
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    decoded = tokenizer.detokenize_graph(padded).numpy()
    assert [text.decode() for text in decoded] == tokenizer.decode(rows)
    french = tokenizer.languages and tokenizer.with_target_language("fra")
    if french:
        assert french.source_graph(TEXTS).to_list() == french.encode(TEXTS)
