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


def train(*arguments, **settings):
    return call(Tokenizer.train, *arguments, **settings)


def symbols(*given):
    return train(LINES, user_defined_symbols=given)


VALUES = {  # a call -> the error
    "Line 1 ": lambda: Tokenizer(model()).encode(["\ud800"]),
    "3 ids.*length=2": lambda: pad_ids([[1, 2, 3]], 0, 2),
    "cannot learn": train(["\x07"]),
    "Line 1 holds": train(["\udfff"]),
    "'word'": train(LINES, model_type="word"),
    "user-defined symbols.* 262": train(LINES, 262, user_defined_symbols=["<2fr>"]),
    "no text": train([]),
    "is no text": train([" ", "\u3000"]),
    "275.* -1": train(LINES, -1),
    "275.* 270": train(LINES, 270),
    "`user_defined_symbols`.*'<s>'": symbols("<s>"),
    "`user_defined_symbols`.*'<0xE9>'": symbols("<2fr>", "<0xE9>"),
    "`user_defined_symbols`.*'a b'": symbols("a b"),
    "`user_defined_symbols`.*''": symbols(""),
    "`user_defined_symbols`.*'x'": symbols("x", "x"),
    "`user_defined_symbols`.*'▁x'": symbols("▁x"),
    "`source_model`.* 0 bytes": lambda: Tokenizer(b""),
    "`source_model`.* 999 bytes": lambda: Tokenizer(model()[:999]),
    "`target_model`.*0 bytes": lambda: Tokenizer(model(), b""),
    "bad.model.*99 bytes": from_file(bytes(99)),
    "=2, end_id=3.*=3, end_id=2": lambda: Tokenizer(model(), start_id=3, end_id=2),
    "`source_model` and `target_model` .*=0.*=-1": lambda: Tokenizer(
        model(), model(pad_id=-1)
    ),
    "`source_model` is not a Sent": no_unknown_piece,
    "`source_model` has the same id.*pad_id=3": one_id_twice,
    "UNIGRAM.* BPE": lambda: Tokenizer(model("bpe")).samplers(0.1),
    "`sampling`.* -1": lambda: Tokenizer(model()).samplers(-1),
    "`target_language`.*'fra'": lambda: MarianTokenizer(model(), target_language="fra"),
    "`vocabulary_size`.* 100000": lambda: MarianTokenizer(
        model(), vocabulary_size=10**5
    ),
    "SentencePiece.*WordTokenizer": lambda: require_sentencepiece("An export", WORDS),
    "Id -1.* 13": call(WORDS.decode, [[4], [-1]]),
    "Id 13.* 13": call(WORDS.decode, [[4], [13]]),
}
TYPES = {
    "Line 2 .*bytes": lambda: WORDS.encode(["a", b"b"]),
    "Line 1 must be str": lambda: WORDS.encode(endless()),
    r"decode ids\[:, 0\]": lambda: WORDS.decode(np.zeros((2, 2, 2), "int32")),
    "list of lists of int.*object": lambda: WORDS.decode(endless()),
    "a list of lists of int. Received a row: array.1": lambda: pad_ids([1, 2], 0),
    "`lines` must be a list.*'text'": train("text"),
    "Line 2.*int": train(["a", 5]),
    "Line 1 .*tuple": train(endless()),
    "Line 1 must .*tuple": train(iter(endless())),  # which never ends
    "`user_defined_symbols` must": train(LINES, user_defined_symbols="<2fr>"),
    "`user_defined_symbols`: line 2 .*int": symbols("a", 5),
    "`source_model`.*str": lambda: Tokenizer("a path"),
    "`source_lines`": lambda: Tokenizer.train_separate("text", LINES),
    "`target_lines`": lambda: Tokenizer.train_separate(LINES, "text"),
}
CLASSES = (  # of `VocabularyTokenizer`
    ("of no text", lambda kind: kind.train([""]), "no text", ValueError),
    ("of one str", lambda kind: kind.train("a"), "`lines`", TypeError),
    ("of batches", lambda kind: kind.train(endless()), "Line 1", TypeError),
    ("of 4 ids", lambda kind: kind.train(["a"], 4), "_size`.* 4", ValueError),
    ("of a, a", lambda kind: kind(["a", "a"]), "'a', 2", ValueError),
    ("of an int", lambda kind: kind(["b", 5]), "`symbols`: line 2", TypeError),
)
ROWS = [
    *(Refusal(pattern, each, pattern) for pattern, each in VALUES.items()),
    *(Refusal(pattern, each, pattern, TypeError) for pattern, each in TYPES.items()),
    Refusal(
        "missing file", lambda: Tokenizer.from_files("gone"), "gone", FileNotFoundError
    ),
    *(
        Refusal(
            f"{type(kind).__name__} of {value!r:.20}",
            call(kind.encode, value),
            "`lines` must be a list",
            TypeError,
        )
        for kind in (Tokenizer(model()), WORDS)
        for value in ("one text", b"bytes", 7, None)
    ),
    *(
        Refusal(f"ids {ids!r:.20}", call(WORDS.decode, ids), "list of lists", TypeError)
        for ids in ("text", 5, [5], [[1.5]], [["a"]], itertools.count())
    ),
    *(
        Refusal(f"{kind.__name__} {name}", call(function, kind), pattern, error)
        for kind in (CharacterTokenizer, WordTokenizer)
        for name, function, pattern, error in CLASSES
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
