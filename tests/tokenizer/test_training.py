import random
import re
import warnings

import pytest
import sentencepiece

from keras_vanilla.data import FileLines
from keras_vanilla.tokenizer import Tokenizer, training
from keras_vanilla.tokenizer.training import fitting_size

LINES = [f"the cat number {n} sat on the mat and saw dog {n * 7}" for n in range(211)]
OTHER = [f"le chat numéro {n} était là où le chien {n * 3} dort" for n in range(211)]
CHINESE = [chr(0x4E00 + n) for n in range(3001)]


def chinese_lines():
    chance = random.Random(3)
    chance.shuffle(CHINESE)
    covering = ["".join(CHINESE[n : n + 23]) for n in range(0, len(CHINESE), 23)]
    return covering + ["".join(chance.choices(CHINESE[:97], k=19)) for _ in range(307)]


def test_default_size_follows_number_of_lines():
    numbers = 1, 39_999, 40_000, 1_999_999, 2_000_000, 19_999_999, 20_000_000, 10**9
    sizes = [fitting_size(lines, 31) for lines in numbers]
    assert sizes == [4_000, 4_000, 8_000, 8_000, 16_000, 16_000, 32_000, 32_000]


def test_large_scripts_get_larger_sizes():
    assert fitting_size(3, len(CHINESE)) == 260 + 2 * len(CHINESE)
    tokenizer = Tokenizer.train(lines=chinese_lines())
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = {peer.id_to_piece(i) for i in range(tokenizer.vocabulary_size)}
    assert set(CHINESE) <= pieces
    assert any(len(piece.strip("▁")) > 1 for piece in pieces if piece[0] != "<")


@pytest.fixture(scope="module")
def normalize():
    """The normalisation of a new tokenizer."""
    model = Tokenizer.train(LINES, 400).source_model
    return sentencepiece.SentencePieceProcessor(model_proto=model).normalize


INVISIBLE = "\u00ad\u061c\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff"


@pytest.mark.parametrize("mark", INVISIBLE, ids=lambda mark: f"U+{ord(mark):04X}")
def test_invisible_characters_are_deleted(normalize, mark):
    assert normalize(f"{mark}th{mark}e{mark} c{mark}at{mark}.") == "▁the▁cat."
    assert normalize(mark) == normalize("")


def test_other_characters_are_normalised_as_by_sentencepiece(normalize):
    peer = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    for first in range(0, 0x30000, 97):
        codes = (code for code in range(first, first + 97) if code >> 11 != 27)
        text = " ".join(map(chr, codes)).translate(training.REMOVED)
        assert normalize(text) == peer.normalize(text)


def test_single_digits_are_pieces():
    for tokenizer in (
        Tokenizer.train(LINES, 287, split_digits=True),
        Tokenizer.train_separate(LINES, LINES, 287, split_digits=True),
    ):
        pieces = tokenizer.target_pieces(range(260, tokenizer.vocabulary_size))
        assert {each for each in pieces if re.search(r"\d", each)} == set("0123456789")


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_default_size_is_lowered_silently(model_type, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tokenizer = Tokenizer.train(lines=LINES, model_type=model_type)
        both = Tokenizer.train_separate(LINES, OTHER, model_type=model_type)
    assert 260 < tokenizer.vocabulary_size < 2_000
    assert 260 < both.target_vocabulary_size < 2_000
    assert capfd.readouterr() == ("", "")


def test_default_size_equals_that_size_given(tmp_path):
    chance = random.Random(11)
    words = ["".join(chance.choices("abcdefghij", k=7)) for _ in range(5_003)]
    lines = [" ".join(chance.choices(words, k=9)) for _ in range(3_001)]
    (tmp_path / "lines").write_text("\n".join(lines))
    given = Tokenizer.train(lines=lines, vocabulary_size=4_000)
    assert given.vocabulary_size == 4_000
    for chosen in (iter(lines), FileLines(tmp_path / "lines")):
        assert Tokenizer.train(chosen).source_model == given.source_model


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_separate_vocabularies(model_type):
    options = {"vocabulary_size": 303, "model_type": model_type}
    both = Tokenizer.train_separate(iter(LINES), iter(OTHER), **options)
    for ours, lines in ((both.source_model, LINES), (both.target_model, OTHER)):
        assert ours == Tokenizer.train(lines=lines, **options).source_model
    assert both.vocabulary_size == both.target_vocabulary_size == 303
    assert both.decode(both.encode_target(OTHER)) == OTHER


def test_separate_sizes_are_lowered_with_a_warning():
    few = ["ab"] * 9
    with pytest.warns(UserWarning, match=r"source fills .* 26\d pieces") as caught:
        both = Tokenizer.train_separate(few, OTHER, vocabulary_size=301)
    assert [warning.filename for warning in caught] == [__file__]
    assert both.vocabulary_size < both.target_vocabulary_size == 301
    with pytest.warns(UserWarning, match="target fills .* not of 301"):
        Tokenizer.train_separate(OTHER, few, vocabulary_size=301)


def test_huge_text_is_subsampled_with_all_characters(monkeypatch):
    monkeypatch.setattr(training, "MOST_LINES", 100)
    lines = [*LINES[:209], "the ж", LINES[0]]  # the 210th is no third line
    sampled = Tokenizer.train(lines=lines, vocabulary_size=300)
    assert sampled.source_pieces(sampled.encode(["ж"])[0][:-1])[-1] == "ж"
    third = Tokenizer.train(lines=[*lines[::3], "ж"], vocabulary_size=300)
    ids = sampled.encode(lines)
    assert [len(row) for row in ids[:99]] == [
        len(row) for row in third.encode(lines)[:99]
    ]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_symbols_are_one_piece(model_type):
    tags = ["<2fr>", "<2de>", "a,b"]
    tokenizer = Tokenizer.train(LINES, 310, model_type, user_defined_symbols=tags)
    line = "<2fr> the cat<2de> a,b"
    (ids,) = tokenizer.encode([line])
    pieces = tokenizer.source_pieces(ids)
    assert [piece for piece in pieces if piece in tags] == tags
    assert tokenizer.decode([ids]) == [line]
    assert tokenizer.source_graph([line]).to_list() == [ids]
    plain = Tokenizer.train(LINES, 310, model_type)
    (ids,) = plain.encode([line])
    assert not set(tags) & set(plain.source_pieces(ids))


def test_symbols_enlarge_the_default_size():
    lines = chinese_lines()
    with_tags = Tokenizer.train(lines, user_defined_symbols=["<2fr>", "<2de>"])
    assert with_tags.vocabulary_size == Tokenizer.train(lines).vocabulary_size + 2
