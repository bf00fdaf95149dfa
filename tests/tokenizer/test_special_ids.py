import itertools

import numpy as np
import peer_models
import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_vanilla.tokenizer import Tokenizer

LINES = [f"the cat number {n} sat on the mat and saw dog {n * 7}" for n in range(211)]
OTHER = [f"le chat numéro {n} était là où le chien {n * 3} dort" for n in range(211)]
# The special ids (pad, unknown, start, end) of each kind; None comes after the pieces.
KINDS = {
    "default": ({}, (None, 0, 1, 2)),
    "t5": ({"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, (0, 2, None, 1)),
    "bare": ({"bos_id": -1, "eos_id": -1}, (None, 0, None, None)),
    "no end": ({"pad_id": 3, "eos_id": -1, "bos_id": 7}, (3, 0, 7, None)),
    "ours": ({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}, (0, 1, 2, 3)),
}
ODD = ["", " ", "Ünïcode ß ﬁ ½", "xyz 漢字 ж", "the  cat\tsat", "▁ ⁇ <s></s><pad>", "é"]


def train(path, lines=LINES, vocab_size=67, **options):
    """A model of `sentencepiece` itself, as its command line leaves it."""
    path.write_bytes(peer_models.learn(lines, vocab_size=vocab_size, **options))
    return path


def peer_of(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def special(tokenizer):
    names = ("pad_id", "unknown_id", "start_id", "end_id")
    return {name: getattr(tokenizer, name) for name in names}


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def default(request, tmp_path_factory):
    """A tokenizer of a model with SentencePiece's defaults."""
    path = tmp_path_factory.mktemp(request.param) / "any.model"
    return Tokenizer.from_files(train(path, model_type=request.param))


@pytest.fixture
def two(tmp_path):
    """Paths of two default models: 67 source pieces, 73 target pieces."""
    return (
        train(tmp_path / "en.model", LINES, 67),
        train(tmp_path / "fr.model", OTHER, 73),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model_type", ["unigram", "bpe", "char"])
def test_missing_special_ids_follow_the_pieces(tmp_path, kind, model_type):
    options, expected = KINDS[kind]
    path = train(tmp_path / "any.model", model_type=model_type, **options)
    tokenizer = Tokenizer.from_files(path)
    pieces = peer_of(path.read_bytes()).get_piece_size()
    free = itertools.count(pieces)
    expected = [next(free) if id_ is None else id_ for id_ in expected]
    assert list(special(tokenizer).values()) == expected
    assert tokenizer.vocabulary_size == tokenizer.target_vocabulary_size == next(free)


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_models_give_sentencepieces_ids_and_text(tmp_path, kind):
    path = train(tmp_path / "any.model", **KINDS[kind][0])
    tokenizer, peer = Tokenizer.from_files(str(path)), peer_of(path.read_bytes())
    lines = [*LINES[:29], *ODD]
    expected = [[*ids, tokenizer.end_id] for ids in peer.encode(lines)]
    assert tokenizer.encode(lines) == tokenizer.encode_target(lines) == expected
    assert tokenizer.source_graph(lines).to_list() == expected
    rows = [[tokenizer.start_id, *ids, tokenizer.pad_id, 5, 6] for ids in expected]
    ids = np.full((len(rows), max(map(len, rows))), tokenizer.pad_id, "int32")
    for padded, row in zip(ids, rows, strict=True):
        padded[: len(row)] = row
    texts = peer.decode([row[:-1] for row in expected])
    assert tokenizer.decode(rows) == tokenizer.decode(ids) == texts
    assert [text.decode() for text in tokenizer.detokenize_graph(ids).numpy()] == texts


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_text_has_sentencepieces_ids(default, text):
    peer = peer_of(default.source_model)
    (ids,) = default.encode([text])
    assert ids == [*peer.encode(text), peer.eos_id()]
    assert default.decode([ids]) == [peer.decode(ids[:-1])]


def test_tokenizer_is_rebuilt_from_bytes_and_ids(two):
    for files in (two[:1], two):
        tokenizer = Tokenizer.from_files(*files)
        again = Tokenizer(*(file.read_bytes() for file in files), **special(tokenizer))
        assert again.digest == tokenizer.digest
        assert again.encode(ODD) == tokenizer.encode(ODD)
        assert again.encode_target(ODD) == tokenizer.encode_target(ODD)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_models_share_added_ids(two, order):
    source, target = (two[n] for n in order)
    tokenizer = Tokenizer.from_files(source, target)
    assert list(special(tokenizer).values()) == [73, 0, 1, 2]
    assert tokenizer.vocabulary_size == tokenizer.target_vocabulary_size == 74
    for lines, file, encode in (
        (LINES, source, tokenizer.encode),
        (OTHER, target, tokenizer.encode_target),
    ):
        assert encode(lines) == [
            [*ids, 2] for ids in peer_of(file.read_bytes()).encode(lines)
        ]


@pytest.mark.parametrize("unused", [67, 72])
def test_unused_ids_are_unknown(two, unused):
    tokenizer = Tokenizer.from_files(two[1], two[0])  # 67 target pieces, 73 pads
    assert tokenizer.decode([[66, 73, 73]]) == [peer_of(two[0].read_bytes()).decode(66)]
    rows = [[5, unused, 2], [5, tokenizer.unknown_id, 2]]
    text, unknown = tokenizer.decode(rows)
    assert text == unknown
    graph = tokenizer.detokenize_graph(rows).numpy().tolist()
    assert [each.decode() for each in graph] == [text, text]
