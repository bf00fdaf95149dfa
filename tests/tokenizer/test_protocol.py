"""Tokenizers that users write."""

import keras
import numpy as np
import pytest
from tiers import in_full

from keras_vanilla import Transformer, Translator
from keras_vanilla.data import ParallelCorpus, TokenCache, batches
from keras_vanilla.tokenizer import (
    CharacterTokenizer,
    Tokenizer,
    TokenizerProtocol,
    WordTokenizer,
    pad_ids,
)
from keras_vanilla.tokenizer.protocol import MEMBERS

LINES = ["ab ba", "aab", "b a b"]


class Letters:
    """Written from the documentation alone: "a" is 4, "b" is 5, a space is 6."""

    pad_id, unknown_id, start_id, end_id = 0, 1, 2, 3
    vocabulary_size = target_vocabulary_size = 7
    shares_vocabulary = True
    digest = "letters"

    def encode(self, lines):
        return [[4 + "ab ".index(letter) for letter in line] + [3] for line in lines]

    encode_target = encode

    def decode(self, ids):
        rows = (list(row) + [3] for row in np.asarray(ids).tolist())
        rows = (row[: row.index(3)] for row in rows)
        return ["".join("ab "[id_ - 4] for id_ in row if id_ > 3) for row in rows]

    def source_pieces(self, ids):
        return ["....ab▁"[id_] for id_ in ids]

    target_pieces = source_pieces


@keras.saving.register_keras_serializable("protocol_test")
class SavedLetters(Letters):
    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@keras.saving.register_keras_serializable("protocol_test")
class LowerCase(Tokenizer):
    def encode(self, lines):
        return super().encode([line.lower() for line in lines])


def translator_of(tokenizer):
    keras.utils.set_random_seed(3)
    model = Transformer(
        source_vocabulary_size=tokenizer.vocabulary_size,
        target_vocabulary_size=tokenizer.target_vocabulary_size,
        share_embeddings=tokenizer.shares_vocabulary,
        num_encoder_layers=1,
        num_decoder_layers=1,
        d_model=8,
        num_heads=2,
        d_ff=16,
        dropout=0.0,
        max_length=20,
    )
    return Translator(tokenizer, model)


def assert_same(loaded, translator):
    """All that a translation depends on; a search would be compiled for each."""
    tokenizer, expected = loaded.tokenizer, translator.tokenizer
    assert type(tokenizer) is type(expected) and tokenizer.digest == expected.digest
    ids = expected.encode_target(LINES)
    assert tokenizer.encode(LINES) == expected.encode(LINES)
    assert tokenizer.encode_target(LINES) == ids
    ids = pad_ids(ids, expected.pad_id)
    assert tokenizer.decode(ids) == expected.decode(ids)
    assert loaded.model.get_config() == translator.model.get_config()
    weights = loaded.get_weights(), translator.get_weights()
    for received, saved in zip(*weights, strict=True):
        np.testing.assert_array_equal(received, saved)


def test_protocol_documents_members():
    documented = TokenizerProtocol.__doc__
    assert {"encode", "decode", "digest", "end_id", "source_pieces"} <= set(MEMBERS)
    attributes = [name for name in MEMBERS if name.endswith(("_id", "size", "digest"))]
    assert len(attributes) == 7 and all(name in documented for name in attributes)
    for tokenizer in (Letters(), WordTokenizer(["a"]), CharacterTokenizer(["a"])):
        assert all(hasattr(tokenizer, name) for name in MEMBERS)


def test_custom_tokenizer_in_batches_caches_alignments(tmp_path):
    tokenizer = Letters()
    corpus = ParallelCorpus(LINES, LINES[::-1])
    ((inputs, labels, _),) = batches(corpus, tokenizer, shuffle=False)
    assert sorted(tokenizer.decode(labels)) == sorted(LINES)
    (tmp_path / "a").write_text("\n".join(LINES))
    (tmp_path / "b").write_text("\n".join(LINES[::-1]))
    cache = TokenCache.make(tmp_path / "a", tmp_path / "b", tokenizer, tmp_path / "c")
    ((cached, _, _),) = batches(cache, tokenizer, shuffle=False)
    assert sorted(tokenizer.decode(cached["source_ids"])) == sorted(LINES)
    (links,) = translator_of(tokenizer).align(["ab a"], ["b ba"])
    assert [target for _, target in links] == [0, 1]


@pytest.mark.parametrize(
    "tokenizer",
    [
        SavedLetters(),
        LowerCase(Tokenizer.train(["AB", *LINES], vocabulary_size=270).source_model),
        *in_full(
            CharacterTokenizer.train(LINES),
            WordTokenizer.train_separate(LINES, ["x y"]),
        ),
    ],
    ids=lambda tokenizer: type(tokenizer).__name__,
)
def test_translator_with_custom_tokenizer_is_saved(tokenizer, tmp_path):
    translator = translator_of(tokenizer)
    translator.save(tmp_path / "t.keras")
    for load in (Translator.load, keras.saving.load_model):
        assert_same(load(tmp_path / "t.keras"), translator)


def test_unsaveable_tokenizer_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Letters cannot be saved.* Register"):
        translator_of(Letters()).save(tmp_path / "t.keras")
    half = type("HalfSaved", (Letters,), {"get_config": lambda self: {}})
    half = keras.saving.register_keras_serializable("protocol_test")(half)
    with pytest.raises(ValueError, match="HalfSaved cannot.*no `from_config`"):
        translator_of(half()).save(tmp_path / "t.keras")
    assert not list(tmp_path.iterdir())


def test_other_objects_are_refused(tmp_path):
    translator, corpus = translator_of(Letters()), ParallelCorpus(LINES, LINES)
    with pytest.raises(TypeError, match="a Translator without .*vocabulary_size"):
        batches(corpus, translator)
    with pytest.raises(TypeError, match="`tokenizer`.*Received: a str without"):
        Translator("tokenizer.model", translator.model)


@pytest.mark.full
def test_steps_take_ids_of_any_tokenizer(tmp_path):
    from keras_vanilla import export

    translator = translator_of(WordTokenizer.train(LINES))
    path = tmp_path / "t.tflite"
    export.tflite(translator, path, form="steps", quantize=None, check="structure")
    report = export.verify(translator, path, LINES)
    assert report.sentences == 3 and not report.faults
    assert report.equal + report.near_ties == report.sentences
