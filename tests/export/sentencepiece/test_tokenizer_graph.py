"""Text to ids and back inside a `.tflite` file; `sentencepiece` says what is right."""

import itertools
import random

import numpy as np
import peer_models
import pytest
import sentencepiece
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces_in_text import decoded_pieces, encoded_pieces
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tiers import in_full
from tokenizer_files import convert_decoder, convert_encoder, runner

from keras_vanilla._operators import Operators
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.export.phone_operators import DynamicShapes
from keras_vanilla.export.sentencepiece.tokenizer_graph import (
    TextDecoder,
    TextEncoder,
)
from keras_vanilla.export.sentencepiece.trie import ByteTrie
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.tokenizer import Tokenizer

MAX_BYTES, MAX_IDS = 131, 67
PIECE = ModelProto.SentencePiece
UNKNOWN = (0, PIECE.UNKNOWN)
LINES = [
    f"{word} {n * 37} the cat, number {n}, sat on the mat: {other}!"
    for n in range(150)
    for word, other in [("éclair", "naïve"), ("Straße", "кошка"), ("猫は", "กาแฟ")]
]
ODD = [
    "",
    " ",
    "     ",
    "  two   spaces  ",
    "\t tab\nline\r\n",
    "🙂",
    "🙂🙃👩‍👩‍👧‍👦🇺🇸",
    "e\u0301a\u0308\u0323 \u0301",
    "\u0300",
    "\x01\x02\x7f\x85",
    "\x01",
    "a\x00b",
    "\x00",
    "\x00\x00 a",
    "a\x00",
    "\ufeffcat",
    "c\u200bat",
    "c\u00ada\u2060t\u200f \u2066the cat\u2069",
    "👩🏽\u200d🚀 ❤\ufe0f 🇫🇷",
    "\ufffd",
    "a\ufffd b",
    "▁",
    "▁▁the ▁ cat▁",
    " ▁ ",
    "\u00a0\u3000 x\u2028",
    "ﷺ" * 43,
    "ﷺ and ﷺ",
    "¨ ¨¨  ´x",
    "가각힣",
    "ｶﾞｷﾞ ㍿ ①",
    "cat" * 43,
    "x" * 131,
    "é" * 65,
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "<s> </s> <unk> <pad> <0x41>",
    "<sep><sep> <sep>the cat<se",
    "a" + "\u0301" * 40,
    "ba\u0301t a\u0301",
]
BYTES = [
    b"\xff",
    b"\xfe\xff cat",
    b"caf\xc3",
    b"\xc3 \xa9",
    b"\xe2\x96",
    b"\xe2\x96\x81\xe2\x96",
    b"\xed\xa0\x80",
    b"\xc0\x80\xc1\xbf",
    b"\xe0\x80\x80\xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80\xf5\x80\x80\x80",
    b"\x80\x80 the\xbfcat",
    bytes(range(1, 128)),
    bytes(range(128, 256)),
]


def learn(**options):
    """A model of LINES by `sentencepiece` alone."""
    options = {"vocab_size": 401, "hard_vocab_limit": False, **options}
    return peer_models.learn(LINES, num_threads=1, **options)


def by_hand(pieces, **normalizer):
    """A model of some pieces: text -> score or (score, type); unknown first."""
    if "<unk>" not in pieces:
        pieces = {"<unk>": UNKNOWN} | pieces
    proto = ModelProto()
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    for name, value in normalizer.items():
        setattr(proto.normalizer_spec, name, value)
    for piece, score in pieces.items():
        score, type_ = score if isinstance(score, tuple) else (score, PIECE.NORMAL)
        proto.pieces.add(piece=piece, score=score, type=type_)
    return proto.SerializeToString()


def unescaped(model):
    """The same pieces, with spaces as they are."""
    proto = ModelProto.FromString(model)
    proto.normalizer_spec.escape_whitespaces = False
    for piece in proto.pieces:
        piece.piece = piece.piece.replace("▁", " ")
    return proto.SerializeToString()


def partly_unused(model):
    """The same pieces, some of them out of use."""
    proto = ModelProto.FromString(model)
    for piece in proto.pieces[::7]:
        if piece.type == PIECE.NORMAL:
            piece.type = PIECE.UNUSED
    return proto.SerializeToString()


def halving():
    """Pieces whose scores are sums of shorter ones', in float32: ties everywhere."""
    rng = random.Random(7)
    pieces = {letter: -rng.random() * 10 for letter in "abc"}
    for length in (2, 3, 4, 5) * 7:
        piece = "".join(rng.choices("abc", k=length))
        cut = rng.randrange(1, length)
        parts = piece[:cut], piece[cut:]
        whole = all(part in pieces for part in parts)
        pieces[piece] = sum(pieces[part] for part in (parts if whole else piece))
    return by_hand(pieces, add_dummy_prefix=False, remove_extra_whitespaces=False)


def outbidding(most):
    """Symbols, and letters of the score `most` that together may score more."""
    letters = dict.fromkeys("abcd", most)
    symbols = dict.fromkeys(["ab", "bc", "dd", "dda"], (0, PIECE.USER_DEFINED))
    return by_hand(letters | symbols | {"abc": most - 0.1, "cd": 2 * most})


def wide():
    """Symbols that the normaliser passes on with several spaces at either end."""
    pieces = dict.fromkeys(["▁", "x", "▁x", "x▁", "▁▁"], -2.0)
    symbols = dict.fromkeys(["  x", "x  ", "   ", "y ▁ "], (0, PIECE.USER_DEFINED))
    return by_hand(pieces | symbols)


MODELS = {
    "nmt_nfkc, bytes": lambda: (
        Tokenizer.train(lines=LINES, vocabulary_size=450).source_model
    ),
    "nfkc, some pieces unused": lambda: partly_unused(
        learn(normalization_rule_name="nfkc")
    ),
    "nmt_nfkc, all spaces": lambda: learn(
        normalization_rule_name="nmt_nfkc", remove_extra_whitespaces=False
    ),
    "identity, bytes, all spaces, no prefix": lambda: learn(
        normalization_rule_name="identity",
        byte_fallback=True,
        vocab_size=499,
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
    ),
    "nmt_nfkc_cf, symbols": lambda: learn(
        normalization_rule_name="nmt_nfkc_cf",
        user_defined_symbols=["<sep>", "a", "e\u0301", "THE", " cat ", "x x"],
        control_symbols=["<2de>"],
        unk_surface="<?>",
    ),
    "no prefix, real spaces": lambda: unescaped(
        learn(normalization_rule_name="nmt_nfkc", add_dummy_prefix=False)
    ),
    "ties": halving,
    "symbols of spaces": wide,
}


class Converted:
    """A model, its oracle, and both directions in LiteRT.

    With fixed shapes, text that is more than three times as long once it is normalised
    only counts as too long.
    """

    def __init__(self, model, operators=None, **options):
        self.is_fixed = type(operators) is Operators
        self.peer = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.size = self.peer.get_piece_size()
        self.end_id = self.peer.eos_id() if self.peer.eos_id() >= 0 else self.size
        self.pad_id = self.size + 1
        encoder = TextEncoder(
            UnigramModel(model), MAX_BYTES, MAX_IDS, self.end_id, self.pad_id
        )
        decoder = TextDecoder(UnigramModel(model), MAX_IDS, self.end_id)
        self.max_text = decoder.max_bytes
        self.files = [
            convert_encoder(encoder, operators, **options),
            convert_decoder(decoder, operators),
        ]
        self._encode, self._decode = map(runner, self.files)

    def encode(self, text):
        octets = np.zeros(MAX_BYTES, "uint8")
        octets[: len(text)] = np.frombuffer(text, "uint8")
        outputs = self._encode(text=octets)
        self.spans = outputs["spans"].tolist()
        return outputs["ids"].tolist(), int(outputs["count"])

    def decode(self, ids):
        padded = np.full(MAX_IDS, self.pad_id, "int32")
        padded[: len(ids)] = ids
        outputs = self._decode(ids=padded)
        length = int(outputs["length"])
        assert not outputs["text"][length:].any()
        self.ends = outputs["ends"].tolist()
        return outputs["text"][:length].tobytes()

    def check_encoding(self, text):
        text = text if isinstance(text, bytes) else text.encode()[:MAX_BYTES]
        expected = [*self.peer.encode(text.rstrip(b"\0")), self.end_id]
        ids, count = self.encode(text)
        if self.is_fixed and len(self.peer.normalize(text)) > len(text):
            if count == MAX_IDS + 1:
                return
        assert count == len(expected), text
        assert ids == (expected + [self.pad_id] * MAX_IDS)[:MAX_IDS], text
        pieces = encoded_pieces(self.peer, text.rstrip(b"\0"))
        expected = [[piece.begin, piece.end] for piece in pieces]
        assert self.spans == (expected + [[0, 0]] * MAX_IDS)[:MAX_IDS], text

    def check_decoding(self, ids):
        ended = ids.index(self.end_id) if self.end_id in ids else len(ids)
        pieces = decoded_pieces(self.peer, ids[:ended])
        formed = [piece.surface != "\ufffd" for piece in pieces]
        kept = list(itertools.compress(ids, formed))
        expected = self.peer.decode(kept).encode()
        assert self.decode(ids) == expected, ids
        ends = [0, *(piece.end for piece in decoded_pieces(self.peer, kept))]
        counts = itertools.accumulate(formed)
        assert self.ends[:ended] == [ends[count] for count in counts], ids
        assert set(self.ends[ended:]) <= {len(expected)}


FIXED = "fixed shapes, "
IN_DEFAULT_TIER = ("nmt_nfkc, bytes", "nmt_nfkc_cf, symbols")


@pytest.fixture(
    scope="module",
    params=[
        *IN_DEFAULT_TIER,
        FIXED + IN_DEFAULT_TIER[0],
        *in_full(*(name for name in MODELS if name not in IN_DEFAULT_TIER)),
        *in_full(*(FIXED + name for name in list(MODELS)[1:])),
    ],
)
def converted(request):
    name = request.param.removeprefix(FIXED)
    operators = Operators() if name != request.param else DynamicShapes()
    return Converted(MODELS[name](), operators)


@pytest.fixture(scope="module")
def usual():
    return Converted(MODELS["nmt_nfkc, bytes"]())


def spaced(names, seed):
    """Names, some of them after one another with odd white space between."""
    rng = random.Random(seed)
    for name in rng.sample(names, 200):
        yield rng.choice(["", "", " ", "  ", "\u00a0"]).join([name, rng.choice(names)])


def mixed_texts(converted, count, seed):
    """Pieces as they are written, odd ones among them, side by side."""
    rng, peer = random.Random(seed), converted.peer
    pieces = [peer.id_to_piece(id_).replace("▁", " ") for id_ in range(converted.size)]
    rare = [
        peer.id_to_piece(id_)
        for id_ in range(converted.size)
        if len(peer.id_to_piece(id_)) > 4 or peer.get_score(id_) == 0
    ]
    for _ in range(count):
        pool = [*rng.choices(pieces, k=9), *rng.choices(rare, k=3), rng.choice(ODD)]
        yield "".join(rng.choices([*pool, " "], k=rng.randrange(20)))


def mixed_ids(converted, count, seed):
    """Sequences of all kinds of pieces, of bytes and of ends in all places."""
    rng, peer = random.Random(seed), converted.peer
    ids = range(converted.size)
    byte_ids = [id_ for id_ in ids if peer.is_byte(id_)] or ids
    marked = [id_ for id_ in ids if peer.id_to_piece(id_) in ("▁", "▁▁", " ", "▁the")]
    special = [id_ for id_ in ids if peer.is_control(id_) or peer.is_unknown(id_)]
    pools = [ids, byte_ids, byte_ids[128:] or ids, marked or ids, special]
    for _ in range(count):
        chosen = rng.choices(pools, k=rng.choice([1, 2, 3, 5]))
        yield [rng.choice(rng.choice(chosen)) for _ in range(rng.randrange(MAX_IDS))]


def test_odd_texts_get_ids_of_sentencepiece(converted):
    for text in [*LINES[:3], *ODD, *BYTES]:
        converted.check_encoding(text)


@pytest.mark.full
def test_names_and_mixed_pieces_get_ids_of_sentencepiece(converted, all_names):
    for text in (*spaced(all_names, seed=3), *mixed_texts(converted, 300, seed=4)):
        converted.check_encoding(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=32) | st.binary(max_size=MAX_BYTES))
def test_any_text_gets_ids_of_sentencepiece(converted, text):
    converted.check_encoding(text)


def test_equal_scores_are_decided_as_sentencepiece_decides():
    ties, rng = Converted(halving()), random.Random(5)
    for _ in range(300):
        ties.check_encoding("".join(rng.choices("abc", k=rng.randrange(60))))


@pytest.mark.full
@pytest.mark.parametrize("most", [-0.01, 0.0499, 0.0501, 0.5])
def test_user_defined_symbols_score_as_in_sentencepiece(most):
    symbols, rng = Converted(outbidding(most)), random.Random(6)
    for _ in range(200):
        symbols.check_encoding("".join(rng.choices("abcd x", k=rng.randrange(40))))


def test_any_ids_become_text_of_sentencepiece(converted):
    for ids in mixed_ids(converted, 400, seed=2):
        converted.check_decoding(ids)


def test_odd_numbers_of_ids_and_odd_ids_are_cut_or_skipped(usual):
    text = "🙂" * 32
    ids, count = usual.encode(text.encode())
    assert count == len(usual.peer.encode(text)) + 1 > MAX_IDS
    assert ids == usual.peer.encode(text)[:MAX_IDS]
    ids = usual.peer.encode("the cat")
    for foreign in (-1, usual.size, usual.pad_id, 2**31 - 1, -(2**31)):
        assert usual.decode([foreign, ids[0], foreign, *ids[1:]]) == b"the cat"
    texts = [usual.peer.decode([5, id_]) for id_ in range(usual.size)]
    longest = max(range(usual.size), key=lambda id_: len(texts[id_].encode()))
    text = usual.decode([longest] * MAX_IDS)
    assert text.decode() == usual.peer.decode([longest] * MAX_IDS)
    assert len(text) <= usual.max_text


def test_shapes_are_static_and_have_no_batch(usual):
    for model in map(unpacked, usual.files):
        main = model.subgraphs[0]
        for tensor in [*main.inputs, *main.outputs]:
            assert main.tensors[tensor].shapeSignature is None
    encoder, decoder = (Interpreter(model_content=file) for file in usual.files)
    shapes = [
        {tuple(detail["shape"]) for detail in details}
        for each in (encoder, decoder)
        for details in (each.get_input_details(), each.get_output_details())
    ]
    assert shapes == [
        {(MAX_BYTES,)},
        {(MAX_IDS,), (), (MAX_IDS, 2)},
        {(MAX_IDS,)},
        {(usual.max_text,), (), (MAX_IDS,)},
    ]


@pytest.mark.full
def test_quantised_file_keeps_scores():
    """The converter rounds tables of 1,024 floats and more to int8."""
    rng = random.Random(9)
    letters = "abcdefghijkl"
    pieces = {
        a + b + c: -rng.random() * 9 for a in letters for b in letters for c in letters
    }
    pieces |= {letter: -rng.random() * 9 for letter in letters}
    quantised = Converted(by_hand(pieces), optimizations=[tf.lite.Optimize.DEFAULT])
    for _ in range(100):
        quantised.check_encoding("".join(rng.choices(letters, k=50)))


def rewritten():
    """A model that rewrites decoded text."""
    proto = ModelProto.FromString(learn(normalization_rule_name="nfkc"))
    charsmap = proto.normalizer_spec.precompiled_charsmap
    proto.denormalizer_spec.precompiled_charsmap = charsmap
    return proto.SerializeToString()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: b"", "SentencePiece model.* 0 bytes"),
        (lambda: b"\x0a\xff\xff", "SentencePiece model.* 3 bytes"),
        (lambda: halving()[:-3], r"SentencePiece model.* \d+ bytes"),
        (lambda: learn(model_type="bpe"), "if it is unigram, .* type BPE"),
        (lambda: learn(treat_whitespace_as_suffix=True), "whitespace_as_suffix=True"),
        (rewritten, r"denormalizer_spec of \d{3,} bytes"),
    ],
    ids=["empty", "bytes", "cut", "bpe", "spaces behind words", "rewriting"],
)
def test_other_models_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        UnigramModel(make())


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.lists(st.integers(1, 254), min_size=1, max_size=5).map(bytes),
        st.integers(0, 70_000),
        min_size=1,
        max_size=400,
    ),
    st.lists(st.binary(max_size=6)),
)
def test_trie_finds_its_strings_only(strings, others):
    trie = ByteTrie.build(strings, missing=-1)
    others = [other.replace(b"\xff", b"\xfe") for other in others]
    for string in [*strings, *others]:
        slot = tf.constant(0)
        for octet in string:
            slot = trie.child(slot, octet)
        assert int(trie.values(slot)) == strings.get(string, -1)
