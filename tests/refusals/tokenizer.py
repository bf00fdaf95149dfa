"""What tokenizers refuse."""

import functools
import io
import itertools

import numpy as np
import sentencepiece
from refusal import Refusal
from sentencepiece import sentencepiece_model_pb2

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import (
    CharacterTokenizer,
    MarianTokenizer,
    Tokenizer,
    WordTokenizer,
    pad_ids,
)
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece

LINES = ["one two three", "four five six", "seven eight nine"]
WORDS = WordTokenizer.train(LINES)


@functools.cache
def model(model_type="unigram", **options):
    options = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3} | options
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=writer,
        model_type=model_type,
        vocab_size=30,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return writer.getvalue()


def one_id_twice():
    proto = sentencepiece_model_pb2.ModelProto.FromString(model())
    proto.trainer_spec.pad_piece = "</s>"
    return Tokenizer(proto.SerializeToString())


def no_unknown_piece():
    proto = sentencepiece_model_pb2.ModelProto.FromString(model())
    proto.pieces[1].type = proto.pieces[1].NORMAL
    return Tokenizer(proto.SerializeToString())


def endless():
    return batches(ParallelCorpus(LINES, LINES), WORDS)


def call(function, *arguments, **settings):
    """A call without arguments, for rows made in a loop."""
    return lambda: function(*arguments, **settings)


def from_file(content):
    def call(tmp_path):
        (tmp_path / "bad.model").write_bytes(content)
        Tokenizer.from_files(tmp_path / "bad.model")

    return call


VALUES = [
    ("surrogate", lambda: Tokenizer(model()).encode(["\ud800"]), "Line 1"),
    ("long row", lambda: pad_ids([[1, 2, 3]], 0, 2), "3 ids.*length=2"),
    ("no pieces", lambda: Tokenizer.train(["\x07"]), "cannot learn"),
    ("train on half a character", lambda: Tokenizer.train(["\udfff"]), "Line 1 "),
    ("model type", lambda: Tokenizer.train(LINES, model_type="word"), "'word'"),
    (
        "no room for symbols",
        lambda: Tokenizer.train(LINES, 262, user_defined_symbols=["<2fr>"]),
        "1 user-defined symbols.* 262",
    ),
    ("bad target", lambda: Tokenizer(model(), b""), "`target_model`.*0 bytes"),
    ("bad file", from_file(bytes(99)), "bad.model.*99 bytes"),
    (
        "swapped ids",
        lambda: Tokenizer(model(), start_id=3, end_id=2),
        "start_id=2, end_id=3. .*start_id=3, end_id=2",
    ),
    (
        "two sets of ids",
        lambda: Tokenizer(model(), model(pad_id=-1)),
        "`source_model` and `target_model` must.*pad_id=0.* and pad_id=-1",
    ),
    ("no unknown piece", no_unknown_piece, "`source_model` is not a Sent"),
    ("one id twice", one_id_twice, "`source_model` has the same id.*pad_id=3"),
    ("sampling of BPE", lambda: Tokenizer(model("bpe")).samplers(0.1), "UNIGRAM.* BPE"),
    ("alpha -1", lambda: Tokenizer(model()).samplers(-1), "`sampling`.* -1"),
    (
        "language without a code",
        lambda: MarianTokenizer(model(), target_language="fra"),
        "`target_language`.*'fra'",
    ),
    (
        "too many tokens",
        lambda: MarianTokenizer(model(), vocabulary_size=10**6),
        "`vocabulary_size`.* 1000000",
    ),
    (
        "words in a file of text",
        lambda: require_sentencepiece("An export", WORDS),
        "SentencePiece.*WordTokenizer",
    ),
]
TYPES = [
    ("bytes", lambda: WORDS.encode(["a", b"b"]), "Line 2 .*bytes"),
    ("endless batches", lambda: WORDS.encode(endless()), "Line 1"),
    (
        "ids of beams",
        lambda: WORDS.decode(np.zeros((2, 2, 2), "int32")),
        r"decode ids\[:, 0\]",
    ),
    ("endless ids", lambda: WORDS.decode(endless()), "list of lists"),
    ("flat rows", lambda: pad_ids([1, 2], 0), "list of lists"),
    ("train on str", lambda: Tokenizer.train("text"), "`lines`"),
    ("train on int", lambda: Tokenizer.train(["a", 5]), "Line 2.*int"),
    ("train on batches", lambda: Tokenizer.train(endless()), "Line 1"),
    (
        "train on an endless generator",
        lambda: Tokenizer.train(iter(endless())),
        "Line 1 .*tuple",
    ),
    (
        "symbols in one str",
        lambda: Tokenizer.train(LINES, user_defined_symbols="<2fr>"),
        "`user_defined_symbols`",
    ),
    (
        "symbol that is an int",
        lambda: Tokenizer.train(LINES, user_defined_symbols=["a", 5]),
        "Symbol 2 .*int",
    ),
    ("model path", lambda: Tokenizer("a path"), "`source_model`.*str"),
]
ROWS = [
    *(Refusal(*row, ValueError) for row in VALUES),
    *(Refusal(*row, TypeError) for row in TYPES),
    Refusal(
        "missing file", lambda: Tokenizer.from_files("gone"), "gone", FileNotFoundError
    ),
    *(
        Refusal(
            f"{type(kind).__name__}.{name} of {value!r:.20}",
            call(getattr(kind, name), value),
            "`lines` must be a list",
            TypeError,
        )
        for kind in (Tokenizer(model()), WORDS)
        for name in ("encode", "encode_target")
        for value in ("one text", b"bytes", 7, None)
    ),
    *(
        Refusal(
            f"ids {ids!r:.20}",
            call(WORDS.decode, ids),
            "list of lists of int",
            TypeError,
        )
        for ids in ("text", 5, [5], [[1.5]], [["a"]], itertools.count())
    ),
    *(
        Refusal(f"id {bad}", call(WORDS.decode, [[4], [bad]]), f"Id {bad}.* 13")
        for bad in (-1, 13, 2**31)
    ),
    *(
        Refusal(f"train on {lines}", call(Tokenizer.train, lines), "no text")
        for lines in ([], [" ", "\u3000"])
    ),
    *(
        Refusal(
            f"{name} in one str",
            call(
                Tokenizer.train_separate,
                **{"source_lines": LINES, "target_lines": LINES, name: "text"},
            ),
            f"`{name}`",
            TypeError,
        )
        for name in ("source_lines", "target_lines")
    ),
    *(
        Refusal(f"size {size}", call(Tokenizer.train, LINES, size), f"275.* {size}")
        for size in (-1, 259, 270)
    ),
    *(
        Refusal(
            f"symbols {symbols}",
            call(Tokenizer.train, LINES, user_defined_symbols=symbols),
            "`user_defined_symbols`",
        )
        for symbols in (["<s>"], ["a b"], [""], ["x", "x"], ["▁x"])
    ),
    *(
        Refusal(f"model of {len(bad)} bytes", call(Tokenizer, bad), "`source_model`")
        for bad in (b"", b"garbage", model()[:999])
    ),
    *(
        Refusal(f"{kind.__name__} {name}", call(function, kind), pattern, error)
        for kind in (CharacterTokenizer, WordTokenizer)
        for name, function, pattern, error in (
            ("of no text", lambda kind: kind.train([""]), "no text", ValueError),
            ("of one str", lambda kind: kind.train("a"), "`lines`", TypeError),
            ("of batches", lambda kind: kind.train(endless()), "Line 1", TypeError),
            ("of 4 ids", lambda kind: kind.train(["a"], 4), "_size`.* 4", ValueError),
            ("of a, a", lambda kind: kind(["a", "a"]), "'a', 2", ValueError),
            ("of an int", lambda kind: kind(["b", 5]), "Symbol 2", TypeError),
        )
    ),
]

COMPLETE = (
    "tokenizer/id_rows.py",
    "tokenizer/sampling.py",
    "tokenizer/special_ids.py",
    "tokenizer/tokenizer.py",
    "tokenizer/training.py",
    "tokenizer/vocabulary_tokenizer.py",
)
