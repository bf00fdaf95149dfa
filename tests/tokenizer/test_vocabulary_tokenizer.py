import json

import numpy as np
import pytest

from keras_vanilla.tokenizer import CharacterTokenizer, WordTokenizer

LINES = ["a cab", "ab", "", "b"]


@pytest.mark.parametrize(
    "tokenizer, ids, pieces",
    [
        (CharacterTokenizer, [4, 6, 7, 4, 5, 3], ["a", "▁", "c", "a", "b"]),
        (WordTokenizer, [4, 7, 3], ["▁a", "▁cab"]),
    ],
)
def test_symbols_are_ordered_by_frequency(tokenizer, ids, pieces):
    tokenizer = tokenizer.train(iter(LINES))
    assert tokenizer.encode(LINES[:1]) == [ids]
    assert tokenizer.source_pieces(ids[:-1]) == pieces
    assert tokenizer.target_pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.encode(["", "a"])[0] == [3]
    assert tokenizer.decode(tokenizer.encode_target(LINES)) == LINES
    assert tokenizer.shares_vocabulary
    assert tokenizer.vocabulary_size == tokenizer.target_vocabulary_size == 8


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer, WordTokenizer])
def test_train_separate_has_two_vocabularies(tokenizer):
    tokenizer = tokenizer.train_separate(["a b c"], ["x a"])
    assert not tokenizer.shares_vocabulary
    assert tokenizer.target_vocabulary_size < tokenizer.vocabulary_size
    assert tokenizer.decode(tokenizer.encode_target(["a x"])) == ["a x"]
    assert tokenizer.encode(["x"]) == [[1, 3]]
    again = type(tokenizer).from_config(json.loads(json.dumps(tokenizer.get_config())))
    assert again.encode_target(["a x"]) == tokenizer.encode_target(["a x"])
    assert again.digest == tokenizer.digest
    assert again.digest != type(tokenizer).train(["a b c"]).digest


def test_digest_covers_the_class():
    symbols = ["a", "b"]
    assert CharacterTokenizer(symbols).digest != WordTokenizer(symbols).digest


def test_unknown_text_decodes_to_a_mark():
    tokenizer = WordTokenizer.train(["one two two"], vocabulary_size=5)
    assert tokenizer.encode(["two one"]) == [[4, 1, 3]]
    rows = np.array([[2, 4, 1, 4, 3, 4], [4, 0, 0, 0, 0, 0]])
    assert tokenizer.decode(rows) == ["two ⁇ two", "two"]
