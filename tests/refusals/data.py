"""What corpora, batches and token caches refuse."""

import functools
import gzip
import hashlib
import itertools
import os
import sys
from unittest import mock

from refusal import Refusal

from keras_vanilla.data import FileLines, ParallelCorpus, TokenCache, batches
from keras_vanilla.data.compression import compressed, opened
from keras_vanilla.tokenizer import Tokenizer, WordTokenizer

LINES = ["one two", "three", "four five six"]
WORDS = WordTokenizer.train(LINES)
CORPUS = ParallelCorpus(LINES, LINES)
ENDLESS = batches(CORPUS, WORDS)


@functools.cache
def sentencepiece():
    return Tokenizer.train(LINES, vocabulary_size=280)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(tmp_path, source, target):
    return write(tmp_path / "s", source), write(tmp_path / "t", target)


def from_files(source, target):
    return lambda tmp_path: ParallelCorpus.from_files(*texts(tmp_path, source, target))


def table(content, columns=None, name="t.tsv", **settings):
    return lambda tmp_path: ParallelCorpus.from_table(
        write(tmp_path / name, content), columns, **settings
    )


def cache(tmp_path, source="one\ntwo\n", target="two\none\n"):
    return TokenCache.make(*texts(tmp_path, source, target), WORDS, tmp_path / "cache")


def of_another_version(tmp_path):
    path = cache(tmp_path).folder / "token_cache.ids"
    content = path.read_bytes()[:-32].replace(b'"version": 5', b'"version": 7')
    path.unlink()
    path.write_bytes(content + hashlib.sha256(content).digest())
    TokenCache(path.parent)


def cut(tmp_path):
    path = cache(tmp_path).folder / "token_cache.ids"
    write(path.with_name("cut"), path.read_bytes()[:-1]).replace(path)
    TokenCache(path.parent)


def changed_while_read(tmp_path):
    encode = WORDS.encode

    def touch(lines):
        os.utime(tmp_path / "s", ns=(1, 1))
        return encode(lines)

    with mock.patch.object(WORDS, "encode", touch):
        cache(tmp_path)


def outside(**methods):
    """A tokenizer with ids outside its vocabulary."""
    words = WordTokenizer.train(LINES)
    for name, id_ in methods.items():
        setattr(words, name, lambda lines, id_=id_: [[id_, 3]] * len(lines))
    return words


def without_zstd(action):
    modules = ("compression", "compression.zstd", "backports", "backports.zstd")

    def call(tmp_path):
        with mock.patch.dict(sys.modules, dict.fromkeys(modules)):
            with action(tmp_path / "a.zst"):
                pass

    return call


def without(package):
    def call():
        with mock.patch.dict(sys.modules, {package: None}):
            ParallelCorpus.numbers()

    return call


def pipe(read):
    def call(tmp_path):
        os.mkfifo(tmp_path / "pipe")
        read(tmp_path / "pipe")

    return call


def without_tensorflow():
    with mock.patch.dict(sys.modules, {"keras_vanilla.data.tf_pipeline": None}):
        ENDLESS.dataset()


HALF = "b\ud800"
TAKEN = [("a", "1"), ("a", "2"), ("b", "3"), ("b", "4")]
of = functools.partial(functools.partial, ParallelCorpus)  # of(...)() makes a corpus
made = functools.partial(functools.partial, batches, CORPUS)
LANGUAGE = functools.partial(ParallelCorpus.numbers, "en", "tet")
PIPES = [
    Refusal("FileLines of a pipe", pipe(FileLines), "pipe must be a file"),
    Refusal(
        "cache of a pipe",
        pipe(lambda path: TokenCache.make(path, f"{path}2", WORDS, f"{path}-cache")),
        "pipe must be a file",
    ),
]


def one_path_twice(tmp_path):
    ParallelCorpus.from_files(*[write(tmp_path / "a", "b")] * 2)


def half_gzip(tmp_path):
    path = write(tmp_path / "a.gz", gzip.compress(b"a" * 99)[:-9])
    ParallelCorpus.from_files(path, write(tmp_path / "b", ""))


VALUES = [
    ("lone source", of(["a", "b"], ["c"]), "pair 2 without a target"),
    ("endless sources", of(itertools.repeat("a"), ["b"]), "pair 2 without a target"),
    ("line numbers", of(["a"], ["c"], [1, 2]), "`line_numbers`.* 1, 1 and 2"),
    ("half a character", of(["a", HALF], ["c", "d"]), "Line 2 .*position 1"),
    ("no text", of(["a", " "], ["", "b"]), "none of 2"),
    ("empty slice", lambda: CORPUS[9:], "no pair is left of 3"),
    ("filter of all", lambda: CORPUS.filter(lambda *_: False), "no pair"),
    ("without all", lambda: CORPUS.without([1, 2, 3]), "no pair is left of 3"),
    ("shared", lambda: ParallelCorpus.from_pairs(TAKEN).split(3), "3 pairs: only 2"),
    ("language of one package", LANGUAGE, "de, en, .*'tet'"),
    ("more sources", from_files("a\nb\n", "1\n"), "2 source lines, 1 target"),
    ("empty files", from_files("", ""), "none of 0 lines"),
    ("copy", from_files("a\nb\n", "a\nb\n"), "a text and its translation"),
    ("one path twice", one_path_twice, "must be a text and its translation"),
    ("invalid UTF-8", from_files("a\nb", b"1\n\xe9"), "t, line 2: byte 0xe9"),
    ("one file", lambda: ParallelCorpus.from_files("a", ["b", "c"]), "1 source and 2"),
    ("no files", lambda: ParallelCorpus.from_files([], []), "0 source and 0"),
    ("half a .gz", half_gzip, "a.gz is not a whole .gz file"),
    ("repeated name", table("a\tb\ta\n", ("a", "b")), "more than one .*'a'"),
    ("names of an empty table", table("", ("a", "b")), "no column 'a'"),
    ("one column", table("a\tb\nc\n"), r"line 2: expected 2 tab.*received 1\. on_b"),
    ("three columns", table("a,b,c\n", name="t.csv"), "line 1.*comma.*received 3"),
    ("short row", table("a\tb\tc\nd\te\n", (1, 3)), "line 2.*at least 3.*received 2"),
    ("bad rows", table("a\tb\nc\nd\n\0\t\n"), "line 2: .*1, and 2 more bad rows"),
    ("semicolons", table("a;b\n", name="t.csv"), r"received 1 \(.*delimiter=';'\)"),
    ("names; of", table("a;b\n", ("a", "b"), "t.csv"), "'a;b' .*delimiter=';'"),
    ("UTF-16", table("a\tb\n".encode("utf-16")), "like encoding='utf-16'"),
    ("half UTF-16", table(b"a\0\t", encoding="utf-16-le"), "not utf-16-le: .*trunc"),
    ("bad names", table('"a"b,c\n', ("a", "c"), "t.csv"), "line 1: not CSV"),
    ("names?", table("de\ten\nJa.\tYes.\n"), r"'de', 'en'\) looks .*header=True"),
    ("header=False", table("", ("a", "b"), header=False), "be numbers .*'a', 'b'"),
    ("header", table("", header=2), "`header`.*2"),
    ("delimiter", table("", delimiter=";;"), "`delimiter`.*';;'"),
    ("encoding", table("", encoding="utf-99"), "`encoding`.*'utf-99'"),
    ("no text encoding", table("", encoding="hex"), "`encoding`.*'hex'"),
    ("on_bad_rows", table("", on_bad_rows="ask"), "`on_bad_rows`.*'ask'"),
    ("NUL", table("a\tb\nc\0\td\n"), "t.tsv, line 2: a NUL"),
    ("table in latin-1", table(b"a,b\n\xe9,d\n", name="t.csv"), "line 2: byte 0xe9"),
    ("open quote", table('a,b\n"c,d\n', name="t.csv"), "line 2: not CSV"),
    ("text after a quote", table('"c"d,e\n', name="t.csv"), "line 1: not CSV"),
    ("table of names alone", table("a\tb\n", ("a", "b")), "none of 0 lines"),
    ("no tables", lambda: ParallelCorpus.from_table([]), "`path`.*none"),
    (
        "negative sampling",
        lambda: batches(CORPUS, sentencepiece(), sampling=-0.5),
        "`sampling`.* -0.5",
    ),
    ("noise in one pass", made(WORDS, noise=True, shuffle=False), "`noise`.*shuf"),
    ("step -1", lambda: ENDLESS.start_at(-1), "`step`.* -1"),
    ("lines of -1", lambda: ENDLESS.line_numbers(-1), "`step`.* -1"),
    ("start", lambda: made(WORDS, shuffle=False)().start_at(2), "endless .*step=2"),
    ("no batch", made(WORDS, 10**6, drop_remainder=True), "No batch is left: 3 pairs"),
    ("only long pairs", lambda: batches(CORPUS[:1], WORDS, max_tokens=2), "no pair is"),
    ("empty cache", lambda tmp: batches(cache(tmp, "", ""), WORDS), "no pair .* of 0"),
    ("blank", lambda tmp: batches(cache(tmp, "one", " "), WORDS), "of 1: 1 empty"),
    ("cut cache", cut, "token_cache.ids is damaged"),
    ("cache of another version", of_another_version, "version 5. Received: .*7"),
    ("changed text", changed_while_read, "s has changed while it was read"),
    ("cache of a copy", lambda tmp: cache(tmp, "a", "a"), "a text and its"),
    ("short text", lambda tmp: cache(tmp, "a", "b\nc"), "1 source lines, 2"),
    ("latin-1 text", lambda tmp: cache(tmp, "a\nb", b"c\n\xff"), "t, line 2: byte"),
    (
        "another tokenizer",
        lambda tmp: batches(cache(tmp), WordTokenizer.train(["x"])),
        "cache was made with another tokenizer",
    ),
]
TYPES = [
    ("sources in one str", of("ab", "cd"), "`sources`"),
    ("targets in one str", of(["a"], "b"), "`targets`.*'b'"),
    ("pair of a number", lambda: ParallelCorpus.from_pairs([("a", 5)]), "Line 1 .*int"),
    ("pair of None", lambda: ParallelCorpus.from_pairs([("a", None)]), "Line 1 .*None"),
    ("endless batches", lambda: ParallelCorpus.from_pairs(ENDLESS), "Pair 1"),
    ("pairs in one str", lambda: ParallelCorpus.from_pairs("ab"), "`pairs`"),
    ("no FileLines", lambda: FileLines(), "expects paths"),
    ("FileLines of a list", lambda: FileLines(["a"]), r"\['a'\]"),
    (
        "list of pairs",
        lambda: batches([("a", "b")], WORDS),
        r"`corpus`.*from_pairs\(pairs\).* list",
    ),
    ("no tokenizer", lambda: batches(CORPUS, "a.model"), "a str without"),
]
ROWS = [
    *(Refusal(*row, ValueError) for row in VALUES),
    *(Refusal(*row, TypeError) for row in TYPES),
    Refusal("no number words", without("num2words"), r"\[demo\]", ImportError),
    Refusal("no dates", without("babel.dates"), r"\[demo\]", ImportError),
    Refusal("reading .zst", without_zstd(opened), r"\[zstd\]", ImportError),
    Refusal("writing .zst", without_zstd(compressed), r"\[zstd\]", ImportError),
    Refusal(
        "dataset without TensorFlow", without_tensorflow, r"\[tensorflow\]", ImportError
    ),
    Refusal(
        "missing file",
        lambda tmp_path: ParallelCorpus.from_files(tmp_path / "gone", "a"),
        "gone",
        FileNotFoundError,
    ),
    Refusal(
        "no cache",
        lambda tmp_path: TokenCache(tmp_path),
        "no complete token cache",
        FileNotFoundError,
    ),
    Refusal(
        "folder",
        lambda tmp_path: ParallelCorpus.from_files(tmp_path, "a"),
        "Is a directory",
        IsADirectoryError,
    ),
    *(
        Refusal(
            f"pair {pair!r:.20}",
            functools.partial(ParallelCorpus.from_pairs, [("a", "b"), pair]),
            r"Pair 2 must be \(source, target\)",
            TypeError,
        )
        for pair in ("ab", ("a",), ("a", "b", "c"), None)
    ),
    *(
        Refusal(
            f"index {index}",
            functools.partial(CORPUS.__getitem__, index),
            f"integer or a slice.*{index}",
            TypeError,
        )
        for index in ("a", 1.5)
    ),
    *(
        Refusal(f"split {sizes}", lambda sizes=sizes: CORPUS.split(*sizes), pattern)
        for sizes, pattern in {
            (): "of 3 pairs",
            (3,): "of 3 pairs",
            (2, 1): "of 3 pairs",
            (0,): "`sizes`.* 0",
            (1.5,): "`sizes`.* 1.5",
        }.items()
    ),
    *(PIPES if hasattr(os, "mkfifo") else []),
    *(
        Refusal(f"columns {columns}", table("a\tb\n", columns), pattern)
        for columns, pattern in [
            (("de",), "two different columns.*'de'"),
            ((1, 2, 3), r"\(1, 2, 3\)"),
            ("de", "'de'"),
            (5, "Received: 5"),
            ((2, 2), r"\(2, 2\)"),
            (("b", 2), "both column 2"),
            ((0, 2), "`columns`.* 0"),
            ((1.5, 2), "`columns`.* 1.5"),
            (("a", "c"), "no column 'c'.*'a', 'b'"),
        ]
    ),
    *(
        Refusal(
            f"{name}={value!r:.30}",
            made(WORDS, **{name: value}),
            pattern,
        )
        for name, value, pattern in [
            ("tokens_per_batch", 0, "`tokens_per_batch`.* 0"),
            ("tokens_per_batch", 0.5, "`tokens_per_batch`.* 0.5"),
            ("max_tokens", 1, "`max_tokens`.* 1"),
            ("seed", -1, "`seed`.* -1"),
            ("first_step", -3, "`first_step`.* -3"),
            ("widths", (), r"`widths`.*\(\)"),
            ("widths", (8, 8, 256), r"`widths`.*\(8, 8, 256\)"),
            ("widths", (64, 8, 256), r"`widths`.*\(64, 8, 256\)"),
            ("widths", [0, 256], "`widths`.* 0"),
            ("widths", (8.5, 256), "`widths`.* 8.5"),
            ("widths", (8, 255), r"`widths`.*\(8, 255\), max_tokens=256"),
            ("widths", 256, "`widths`.* 256"),
            ("widths", itertools.count(1), r"`widths`.*count\(1\)"),
            ("max_length_ratio", 0.5, "`max_length_ratio`.* 0.5"),
            ("max_length_ratio", "3", "`max_length_ratio`.* '3'"),
            ("drop_duplicates", "no", "`drop_duplicates`.*'no'"),
            ("sampling", 0.1, "`sampling`.*WordTokenizer"),
            ("noise", True, "`Tokenizer`.*WordTokenizer"),
        ]
    ),
    *(
        Refusal(
            f"{side} gives id {id_}",
            made(outside(**{side: id_})),
            f"Id {id_} .* of 10",
        )
        for side in ("encode", "encode_target")
        for id_ in (-1, 10)
    ),
]

COMPLETE = (
    "data/batching.py",
    "data/bucketing.py",
    "data/compression.py",
    "data/corpus.py",
    "data/filters.py",
    "data/id_store.py",
    "data/lines.py",
    "data/noise.py",
    "data/sampled_ids.py",
    "data/table.py",
    "data/token_cache.py",
)
