"""Marian's tokenizer from its files; the oracle is `sentencepiece` alone."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marian_texts import (
    KINDS,
    SOURCE,
    SPECIAL,
    TARGET,
    TEXTS,
    Reference,
    learn_models,
    write_files,
)

from keras_vanilla.interop.marian_tokenizer import tokenizer_from_marian
from keras_vanilla.tokenizer import MarianTokenizer, Tokenizer
from keras_vanilla.translation.alignment import align
from keras_vanilla.translation.batch_translation import Hypothesis
from keras_vanilla.translation.long_texts import stream_sentences


@pytest.fixture(scope="module")
def models():
    return learn_models()


@pytest.fixture(scope="module", params=KINDS)
def folder(request, models, tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("marian") / "x", models, request.param)


@pytest.fixture(scope="module")
def joint(models, tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("marian") / "joint", models)


@pytest.fixture(scope="module")
def pair(joint):
    return tokenizer_from_marian(joint), Reference(joint)


def test_ids_are_those_of_the_tokens(folder):
    tokenizer, reference = tokenizer_from_marian(folder), Reference(folder)
    assert tokenizer.encode(TEXTS) == [reference.encode(text) for text in TEXTS]
    expected = [reference.encode(text, "target") for text in TEXTS]
    assert tokenizer.encode_target(TEXTS) == expected


def test_pieces_may_be_no_tokens_and_unknown_text_may_be_one(pair):
    tokenizer, reference = pair
    peer, ids = reference.sides["source"]
    assert peer.encode("the dog", out_type=str) == ["▁the", "▁dog"]
    assert tokenizer.encode(["dog"]) == [[tokenizer.unknown_id, tokenizer.end_id]]
    assert peer.encode("é", out_type=str) == ["▁", "é"]
    assert peer.unk_id() in peer.encode("é")
    assert tokenizer.encode(["é"]) == [[ids["▁"], ids["é"], tokenizer.end_id]]
    assert tokenizer.encode(["éé"])[0][1] == tokenizer.unknown_id


@given(st.text(max_size=23) | st.text("thecatéдом¢🙂>< frau/s▁", max_size=23))
def test_ids_of_any_text_are_those_of_the_tokens(pair, text):
    tokenizer, reference = pair
    texts = [text, f">>fra<<{text}"]
    assert tokenizer.encode(texts) == list(map(reference.encode, texts))


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**4), max_size=13))
def test_text_of_any_ids_is_that_of_the_tokens(pair, numbers):
    tokenizer, reference = pair
    ids = [number % tokenizer.target_vocabulary_size for number in numbers]
    end = tokenizer.end_id
    until_end = ids[: ids.index(end)] if end in ids else ids
    assert tokenizer.decode([ids, [*ids, end, 7]]) == [reference.decode(until_end)] * 2


def test_special_ids_and_sizes(folder):
    tokenizer, ids = tokenizer_from_marian(folder), Reference(folder).source_ids
    assert tokenizer.start_id == tokenizer.pad_id == ids["<pad>"] == len(ids) - 1
    assert (tokenizer.unknown_id, tokenizer.end_id) == (ids["<unk>"], ids["</s>"])
    assert tokenizer.vocabulary_size == tokenizer.target_vocabulary_size == len(ids)
    separate = (folder / "target_vocab.json").exists()
    assert tokenizer.shares_vocabulary is not separate
    assert tokenizer.source_pieces(range(len(ids))) == list(ids)


@pytest.mark.parametrize("text", SPECIAL)
def test_text_never_has_special_ids(pair, text):
    tokenizer, _ = pair
    for (ids,) in tokenizer.encode([text]), tokenizer.encode_target([text]):
        assert not {tokenizer.pad_id, tokenizer.end_id} & set(ids[:-1])


def test_unknown_code_is_refused_where_there_are_codes(pair, models, tmp_path):
    tokenizer, _ = pair
    message = (
        "begins with '>>fr<<', which is not in the vocabulary: '>>fr<< the cat'. "
        "It has >>fra<<, >>deu<<, "
    )
    with pytest.raises(ValueError, match=message):
        tokenizer.encode([">>fra<< the cat", ">>fr<< the cat"])
    without = tokenizer_from_marian(write_files(tmp_path / "x", models, "no codes"))
    assert without.encode([">>fr<< the"])[0][0] == without.unknown_id
    assert without.languages == []


def test_codes_are_text_where_they_are_not_read(pair):
    tokenizer, reference = pair
    config = tokenizer.get_config() | {"reads_codes": False}
    plain = MarianTokenizer(tokenizer.source_model, tokenizer.target_model, **config)
    peer, ids = reference.sides["source"]
    for text in (">>fra<< the cat", ">>fr<< the", "the cat"):
        pieces = peer.encode(text, out_type=str)
        expected = [ids.get(piece, plain.unknown_id) for piece in pieces]
        assert plain.encode([text]) == [[*expected, plain.end_id]]
        assert plain.code_of(text) == ""
    assert plain.languages == [] and plain.digest != tokenizer.digest


def test_target_language_is_in_front_of_every_source(pair):
    tokenizer, reference = pair
    assert tokenizer.languages == ["fra", "deu", "zho_Hans", "two words"]
    french = tokenizer.with_target_language("fra")
    texts = [text for text in TEXTS if len(tokenizer.encode_target([text])[0]) > 1]
    expected = [reference.encode(f">>fra<<{text}") for text in texts]
    assert french.encode(texts) == expected
    assert french.encode(["", " \t"]) == [[french.end_id]] * 2  # nothing to translate
    assert french.encode_target(TEXTS) == tokenizer.encode_target(TEXTS)
    assert french.with_target_language(None).encode(TEXTS) == tokenizer.encode(TEXTS)
    assert french.digest != tokenizer.digest
    with pytest.raises(ValueError, match="`target_language` must be one of 'fra', 'de"):
        tokenizer.with_target_language("fr")


class CountedModel:
    """Translates ids into their number; takes the place of a `BatchTranslator`."""

    def __init__(self, tokenizer, max_length):
        self.tokenizer, self.model = tokenizer, SimpleNamespace(max_length=max_length)
        self.sources = []

    def stream(self, texts, sources):
        for _, ids in zip(texts, sources, strict=True):
            self.sources.append(list(ids))
            yield [Hypothesis(str(len(ids)), None, list(ids), True)]


@pytest.mark.filterwarnings("ignore:.*have a sentence of more than")
@pytest.mark.parametrize("most", [97, 23])
def test_every_sentence_of_a_text_has_its_code(pair, most):
    tokenizer, _ = pair
    sentences = ["The cat sat.", "They saw the dog, the house and a tree."]
    model = CountedModel(tokenizer, most)
    texts = [">>deu<< " + " ".join(sentences), " ".join(sentences)]
    assert len(list(stream_sentences(model, texts))) == 2
    code = tokenizer.source.codes[">>deu<<"]
    have_code = [ids[0] == code for ids in model.sources]
    count = sum(have_code)
    assert have_code == [True] * count + [False] * (len(have_code) - count)
    assert max(map(len, model.sources)) <= most
    if most == 97:
        coded = [f">>deu<< {sentence}" for sentence in sentences]
        assert model.sources == tokenizer.encode(coded + sentences)
    else:
        assert count > 2


def test_sampled_segmentations_are_of_tokens(pair):
    tokenizer, _ = pair
    (ids,) = tokenizer.encode([">>fra<< they see the dog under the tree é"])
    sampler, _ = tokenizer.samplers(0.1)
    chance = random.Random(0)
    drawn = [sampler(ids[:-1], chance) for _ in range(99)]
    assert len(set(map(tuple, drawn))) > 9
    assert all(row[0] == ids[0] for row in drawn)
    assert max(map(max, drawn)) < tokenizer.vocabulary_size
    assert {tokenizer.decode([row])[0] for row in drawn} == set(tokenizer.decode([ids]))


def test_configuration_restores_tokenizer(pair):
    tokenizer = pair[0].with_target_language("deu")
    models = tokenizer.source_model, tokenizer.target_model
    same = MarianTokenizer(*models, **tokenizer.get_config())
    assert same.digest == tokenizer.digest
    assert same.encode(TEXTS) == tokenizer.encode(TEXTS)


class AttendingModel:
    """Each target piece attends to the source piece at its own place alone."""

    num_decoder_layers, max_length = 1, 97

    def __init__(self, tokenizer):
        self.pad_id, self.end_id = tokenizer.pad_id, tokenizer.end_id
        self.start_id = tokenizer.start_id

    def attention_weights(self, inputs):
        shape = *inputs["target_ids"].shape, inputs["source_ids"].shape[1]
        weights = np.broadcast_to(np.eye(*shape[1:]), shape)
        return {"decoder/0/cross": weights[:, None]}


def test_alignment_leaves_out_language_code(pair):
    tokenizer, _ = pair
    (target,) = tokenizer.encode_target(["le la le la"])
    assert len(target) == 5
    links = {}
    for language in (None, "fra"):
        one = tokenizer.with_target_language(language)
        text = "the cat sat" if language else ">>fra<< the cat sat"
        (source,) = one.encode([text])
        (links[language],) = align(AttendingModel(one), one, [source], [target])
    assert links[None][:4] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert links["fra"][1:4] == [(0, 1), (1, 2), (2, 3)]


def test_plain_model_gives_ids_of_tokenizer():
    learnt = Tokenizer.train(SOURCE + TARGET, 320)
    same = MarianTokenizer(learnt.source_model)
    assert same.encode(SOURCE) == learnt.encode(SOURCE)
    assert same.get_config().items() >= learnt.get_config().items()
    with pytest.raises(ValueError, match="`vocabulary_size` must be an integer from 4"):
        MarianTokenizer(learnt.source_model, vocabulary_size=321)
    with pytest.raises(ValueError, match="Expected: .* Received: .*start_id=5"):
        MarianTokenizer(learnt.source_model, start_id=5)
