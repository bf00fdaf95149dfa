import gzip
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import keras
import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data import FileLines, ParallelCorpus
from keras_vanilla.tokenizer import Tokenizer, tf_text

LINES = [f"the cat number {n} sat on the mat and saw dog {n * 7}" for n in range(211)]
OTHER = [f"le chat numéro {n} était là où le chien {n * 3} dort" for n in range(211)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(lines=LINES, vocabulary_size=307)


@pytest.fixture(scope="module")
def bilingual(tokenizer):
    other = Tokenizer.train(lines=OTHER, vocabulary_size=311)
    return Tokenizer(tokenizer.source_model, other.source_model)


@pytest.fixture(scope="module")
def numbers():
    corpus = ParallelCorpus.numbers()
    lines = [*list(corpus.sources)[::23], *list(corpus.targets)[::23]]
    return Tokenizer.train(lines=lines, vocabulary_size=400), lines


def test_empty_line_is_end_id(tokenizer):
    assert tokenizer.encode(["", " \t"]) == [[3], [3]]
    assert tokenizer.encode([]) == []
    assert tokenizer.decode([[3], []]) == ["", ""]
    assert tokenizer.decode([]) == []


def test_two_models_are_two_vocabularies(bilingual, tokenizer):
    assert (bilingual.vocabulary_size, bilingual.target_vocabulary_size) == (307, 311)
    assert bilingual.source_model != bilingual.target_model
    assert bilingual.encode(LINES) == tokenizer.encode(LINES)
    assert bilingual.decode(bilingual.encode_target(OTHER)) == OTHER
    assert tokenizer.source_model == tokenizer.target_model
    assert tokenizer.vocabulary_size == tokenizer.target_vocabulary_size == 307


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["C"]), max_size=30))
def test_any_text_round_trips(tokenizer, text):
    text = " ".join(unicodedata.normalize("NFKC", text).replace("▁", " ").split())
    (normal,) = tokenizer.decode(tokenizer.encode([text]))
    again = tokenizer.encode([normal])
    assert tokenizer.decode(again) == [normal]
    assert tokenizer.unknown_id not in again[0]
    allowed = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    assert normal == allowed.normalize(text).replace("▁", " ").strip()


def test_decode_stops_at_end_id(tokenizer):
    (ids,) = tokenizer.encode(LINES[:1])
    rows = [[2, *ids, 5, 6, 3], [0, *ids[:-1], 0, 0, 0, 0], [3, *ids, 0, 0]]
    assert tokenizer.decode(rows) == [LINES[0], LINES[0], ""]
    padded = np.array([row + [0] * (99 - len(row)) for row in rows], dtype="int32")
    assert tokenizer.decode(padded) == tokenizer.decode(rows)


def test_malformed_bytes_have_no_text(tokenizer):
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    cat = peer.encode("the cat")
    half, heart, wrong = (
        [peer.piece_to_id(f"<0x{byte:02X}>") for byte in octets]
        for octets in (b"\xe2\x9d", b"\xe2\x9d\xa4", b"\xff")
    )
    texts = {
        (*cat, *half): "the cat",
        (*wrong, *cat, *half, *wrong, *cat, *heart): "the cat the cat❤",
        (*half, *wrong): "",
    }
    assert tokenizer.decode(list(texts)) == list(texts.values())
    for ids, text in texts.items():
        (written,) = tokenizer.detokenize_graph(np.array([ids], "int32")).numpy()
        assert written.decode() == text


def test_training_is_deterministic(tokenizer, tmp_path):
    assert Tokenizer.train(lines=iter(LINES), vocabulary_size=307).source_model == (
        tokenizer.source_model
    )
    (tmp_path / "a").write_text("\n".join(LINES[:99]))
    (tmp_path / "b.gz").write_bytes(gzip.compress("\n".join(LINES[99:]).encode()))
    files = [tmp_path / "a", str(tmp_path / "b.gz")]
    again = Tokenizer.train(FileLines(*files), vocabulary_size=307)
    assert again.source_model == tokenizer.source_model


class CountedLine(str):
    alive = most = 0

    def __init__(self, _):
        CountedLine.alive += 1
        CountedLine.most = max(CountedLine.most, CountedLine.alive)

    def __del__(self):
        CountedLine.alive -= 1


def test_training_streams_lines():
    class Text:
        def __iter__(self):
            return map(CountedLine, LINES * 9)

    tokenizer = Tokenizer.train(Text(), vocabulary_size=307)
    assert CountedLine.most < 20
    whole = Tokenizer.train(LINES * 9, vocabulary_size=307)
    assert tokenizer.source_model == whole.source_model


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_every_character_is_a_piece(model_type):
    lines = [*LINES, "one ẞ only"]
    tokenizer = Tokenizer.train(lines=lines, vocabulary_size=320, model_type=model_type)
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = {peer.id_to_piece(i) for i in range(320)}
    assert {letter for line in lines for letter in line} - {" "} <= pieces
    assert sum(peer.is_byte(i) for i in range(320)) == 256
    (ids,) = tokenizer.encode(["ж"])
    assert [peer.id_to_piece(i) for i in ids[-3:-1]] == ["<0xD0>", "<0xB6>"]


@pytest.mark.parametrize(
    "lines",
    [
        ["xyz", "ab cd " * 900 + "q"],
        ["xyz", "ab cd " * 170_000 + "q"],
        ["x" * 9_999 + "q", "z▅y", "abcd"],
    ],
    ids=["long", "very long", "long word and unknown mark"],
)
def test_no_line_is_dropped_in_training(lines):
    tokenizer = Tokenizer.train(lines=lines, vocabulary_size=269)
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    assert peer.unk_id() not in peer.piece_to_id([*"abcdxyzq"])


def test_large_size_is_lowered_with_a_warning():
    with pytest.warns(UserWarning, match=r"of (\d+) pieces, not of 9000") as caught:
        tokenizer = Tokenizer.train(lines=LINES, vocabulary_size=9000)
    assert str(tokenizer.vocabulary_size) in str(caught[0].message)
    assert caught[0].filename == __file__
    assert tokenizer.vocabulary_size < 9000


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_smallest_size_holds_bytes_and_characters(capfd, model_type):
    least = 4 + 256 + len({"▁", *"".join(LINES)} - {" "})
    settings = {"lines": LINES, "model_type": model_type}
    with pytest.raises(ValueError, match=f"at least {least}. Received: {least - 1}"):
        Tokenizer.train(**settings, vocabulary_size=least - 1)
    smallest = Tokenizer.train(**settings, vocabulary_size=least)
    assert smallest.vocabulary_size == least
    assert capfd.readouterr() == ("", "")


def strange_lines():
    """Seeded strings of every script, controls and spaces of all kinds among them."""
    chance = random.Random(5)
    near = "abc deÀÉß。ｶﾞ①ﬁ\u00ad\u200b\u3000\ufeff\t…‽😀👩‍👩‍👧한국어 ▁<s></s>"
    for _ in range(1009):
        letters = chance.choices(near, k=chance.randrange(1, 30))
        letters += [chr(chance.randrange(1, 0xD800)) for _ in range(3)]
        chance.shuffle(letters)
        yield "".join(letters)


@pytest.mark.full
def test_graph_ids_equal_but_for_ties(numbers):
    """Ids differ only where both segmentations have one text and one score."""
    tokenizer, lines = numbers
    lines = [*lines, *strange_lines(), "", " "]
    assert len(lines) > 5_000
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    graph = tokenizer.source_graph(lines).to_list()
    for ours, theirs in zip(tokenizer.encode(lines), graph, strict=True):
        if ours == theirs:
            continue
        assert ours[-1] == theirs[-1] == 3
        ours, theirs = ours[:-1], theirs[:-1]
        assert peer.decode(ours) == peer.decode(theirs)
        bytes_, others = ([i for i in x if peer.is_byte(i)] for x in (ours, theirs))
        assert bytes_ == others
        scores = [sum(peer.get_score(i) for i in x) for x in (ours, theirs)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_graph_is_traced_and_reused(bilingual):
    import tensorflow as tf

    fresh = Tokenizer(bilingual.source_model, bilingual.target_model)
    lines = [LINES[0], "", OTHER[1]]

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
    def traced(strings):
        target = tf_text.encode(fresh.target_model, strings, fresh.end_id)
        return fresh.source_graph(strings), target

    for source, target in (traced(lines), traced(tf.constant(lines))):
        assert source.dtype == target.dtype == tf.int32
        assert source.to_list() == fresh.encode(lines)
        assert target.to_list() == fresh.encode_target(lines)
    assert fresh.source_graph(lines).to_list() == fresh.encode(lines)
    keras.utils.set_random_seed(7)  # TensorFlow then forgets what eager code keeps
    assert traced(lines)[0].to_list() == fresh.encode(lines)
    assert fresh.source_graph(lines).to_list() == fresh.encode(lines)
    assert fresh.source_graph(tf.zeros([0], tf.string)).to_list() == []


def test_graph_detokenizes_like_python(bilingual):
    import tensorflow as tf

    shapeless = tf.TensorSpec(None, tf.int32)
    detokenize = tf.function(bilingual.detokenize_graph, input_signature=[shapeless])
    chance = np.random.default_rng(11)
    ids = chance.integers(0, 311, size=(97, 13)).astype("int32")
    ids[: len(OTHER[:40])] = 0
    for row, line in zip(ids, bilingual.encode_target(OTHER[:40]), strict=False):
        row[: len(line)] = line[:13]
    ids[chance.random(ids.shape) < 0.05] = 3
    ids[95], ids[96] = 0, 3
    texts = [text.decode() for text in detokenize(ids).numpy()]
    assert texts == bilingual.decode(ids)
    assert texts[95:] == ["", ""]
    assert len(set(texts)) > 60
    assert detokenize(np.zeros((0, 5), "int32")).shape == (0,)
    assert detokenize(np.zeros((2, 0), "int32")).numpy().tolist() == [b"", b""]


def test_import_does_not_import_tensorflow():
    folder = Path(sys.modules["keras_vanilla.tokenizer"].__file__).parents[1]
    code = f"""
import sys, types
package = types.ModuleType("keras_vanilla")  # the package's own __init__ loads Keras
package.__path__ = [{str(folder)!r}]
sys.modules["keras_vanilla"] = package
import keras_vanilla.tokenizer
loaded = {{"tensorflow", "keras", "tensorflow_text", "babel"}}
assert not loaded & set(sys.modules)
tokenizer = keras_vanilla.tokenizer.Tokenizer
tokenizer.train(lines=["a b"], vocabulary_size=263).encode(["a"])
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
