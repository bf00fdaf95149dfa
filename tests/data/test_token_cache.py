import contextlib
import gzip
import hashlib
import itertools
import json
import os
import random
import re
import sys
import tracemalloc
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from child_process import run

from keras_vanilla._folder_lock import folder_lock
from keras_vanilla.data import (
    ParallelCorpus,
    TokenCache,
    batches,
    token_cache,
)
from keras_vanilla.tokenizer import CharacterTokenizer, Tokenizer

LINES = (37, 1, 29, 44)  # of each file
MAX_TOKENS = 41


def text(words, seed):
    draw = random.Random(seed)
    return [f"{n} " + " ".join(draw.choices(words, k=n % 13)) for n in range(111)]


SOURCE, TARGET = text(["some", "words", "here"], 1), text(["des", "mots", "ici"], 2)
SOURCE[5], TARGET[40], SOURCE[80] = " ", "", "long " * 60


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(lines=[*SOURCE, *TARGET], vocabulary_size=300)


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "text", SOURCE, TARGET)


def write(folder, *sides):
    """Paths of the files of each side, the last one gzipped."""
    folder.mkdir()
    paths = []
    for name, side in zip("st", sides, strict=True):
        lines = iter(side)
        paths.append([folder / f"{name}{n}" for n in range(len(LINES) - 1)])
        paths[-1].append(folder / f"{name}.gz")
        for path, count in zip(paths[-1], LINES, strict=True):
            content = "".join(f"{s}\n" for s in itertools.islice(lines, count)).encode()
            packed = gzip.compress(content) if path.suffix else content
            path.write_bytes(packed)
    return paths


def make(files, tokenizer, folder, **options):
    return TokenCache.make(*files, tokenizer, folder, **options)


@pytest.fixture
def cache(files, tokenizer, tmp_path):
    return make(files, tokenizer, tmp_path / "cache")


def batches_of(corpus, tokenizer, count=None, **options):
    options = {"tokens_per_batch": 331, "max_tokens": MAX_TOKENS, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = batches(corpus, tokenizer, **options)
    count = count or dataset.steps_per_epoch
    return dataset, list(itertools.islice(dataset, count))


def assert_same_batches(one, other):
    for found, expected in zip(one, other, strict=True):
        for a, b in zip(arrays_of(found), arrays_of(expected), strict=True):
            np.testing.assert_array_equal(a, b)


def arrays_of(batch):
    inputs, labels, weights = batch
    return [inputs["source_ids"], inputs["target_ids"], labels, weights]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "options",
    [{}, {"shuffle": False}, {"static_shapes": True}, {"sampling": 0.2}],
    ids=str,
)
@pytest.mark.parametrize("max_tokens", [MAX_TOKENS, 19])
def test_batches_are_those_of_corpus_in_memory(
    cache, files, tokenizer, options, max_tokens
):
    corpus = ParallelCorpus.from_files(*files)
    options = options | {"max_tokens": max_tokens, "seed": 6}
    count = None if "shuffle" in options else 40
    found, from_disk = batches_of(cache, tokenizer, count, **options)
    expected, from_memory = batches_of(corpus, tokenizer, count, **options)
    assert_same_batches(from_disk, from_memory)
    for name in ("steps_per_epoch", "tokens_per_epoch", "report"):
        assert getattr(found, name) == getattr(expected, name)
    assert len(cache) == len(corpus) == 109
    for step in range(found.steps_per_epoch):
        assert found.line_numbers(step) == expected.line_numbers(step)


def test_file_has_documented_layout(cache, tokenizer):
    content = (cache.folder / "token_cache.ids").read_bytes()
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    size = int.from_bytes(content[-40:-32], "little")
    description = json.loads(content[-40 - size : -40])
    assert (description["version"], description["dtype"]) == (5, "<u2")
    body = np.frombuffer(content[: -40 - size], "u1")
    offsets, ids = np.split(body, [8 * (2 * len(SOURCE) + 1)])
    rows = np.split(ids.view("<u2"), offsets.view("<i8")[1:-1])
    blank = [n in (5, 40) for n in range(111)]
    texts = [
        ["" if gap else t for t, gap in zip(side, blank, strict=True)]
        for side in (SOURCE, TARGET)
    ]
    expected = tokenizer.encode(texts[0]), tokenizer.encode_target(texts[1])
    assert [row.tolist() for row in rows[::2]] == expected[0]
    assert [row.tolist() for row in rows[1::2]] == expected[1]


def test_left_out_pairs_are_reported_by_line(cache, tokenizer):
    with pytest.warns(UserWarning) as caught:
        data = batches(cache, tokenizer, max_tokens=MAX_TOKENS)
    assert data.report == {"empty": [6, 41], "too long": [81]}
    messages = sorted(str(warning.message) for warning in caught)
    assert re.search("s0, .*: 1 of 111 pairs are longer .* lines 81", messages[0])
    assert re.search("s0, .*: 2 of 111 pairs have no token .* lines 6, 41", messages[1])


def test_blank_pairs_are_empty_for_any_tokenizer(files, tmp_path):
    characters = CharacterTokenizer.train([*SOURCE, *TARGET])
    cache = make(files, characters, tmp_path / "cache")
    data, _ = batches_of(cache, characters, max_tokens=999)
    assert data.report == {"empty": [6, 41]}


@pytest.mark.parametrize("lines", [1, 7])
def test_chunk_size_and_paths_do_not_change_batches(
    cache, files, tokenizer, tmp_path, monkeypatch, lines
):
    monkeypatch.setattr(token_cache, "LINES_AT_ONCE", lines)
    moved = (tmp_path / "text").rename(tmp_path / "moved")
    files = [[moved / path.name for path in side] for side in files]
    other = make(files, tokenizer, tmp_path / "other")
    assert other.digest == cache.digest
    found = [batches_of(each, tokenizer, 30)[1] for each in (cache, other)]
    assert_same_batches(*found)
    assert make(files, tokenizer, cache.folder).origin == other.origin


def test_memory_is_bounded(tokenizer, tmp_path):
    """NumPy and Python report what they allocate; both counts are exact."""
    tokenizer = ManyIds(tokenizer)
    peaks = []
    for lines in (20_000, 80_000):
        (folder := tmp_path / str(lines)).mkdir()
        files = write_whole(folder, ["words"] * (lines - 1) + ["last"])
        tracemalloc.start()
        make(files, tokenizer, folder / "cache")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    ids = 2 * 2 * ManyIds.COUNT * 60_000  # bytes that the larger one has more
    assert peaks[1] - peaks[0] < ids / 10


class ManyIds:
    """The tokenizer, whose texts have a fixed number of ids."""

    COUNT = 41

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def encode(self, texts):
        return [[5] * self.COUNT] * len(texts)

    encode_target = encode


def refuse(*_):
    raise AssertionError("nothing is to be read or made")


def test_unchanged_cache_is_reused_without_reading_text(
    cache, files, tokenizer, monkeypatch, capsys
):
    before = contents(cache.folder)
    monkeypatch.setattr(token_cache, "count_lines", refuse)
    monkeypatch.setattr(token_cache, "_make", refuse)
    with folder_lock(cache.folder):  # nor is the lock taken
        make(files, tokenizer, cache.folder, progress=sys.stderr)
    before.pop(".lock")
    after = contents(cache.folder)
    after.pop(".lock")
    assert after == before and capsys.readouterr().err == ""


def test_touched_text_is_compared_by_content(cache, files, tokenizer, monkeypatch):
    monkeypatch.setattr(token_cache, "_make", refuse)
    os.utime(files[0][0], ns=(1, 1))
    assert make(files, tokenizer, cache.folder).digest == cache.digest


def test_cache_without_pairs_is_made_again(tokenizer, tmp_path):
    files = tmp_path / "source", tmp_path / "target"
    for pairs, texts in enumerate(
        [("words\n\n", "\nmots\n"), ("words\n\n", "mots\n\n")]
    ):
        for path, content in zip(files, texts, strict=True):
            path.write_text(content)
        assert len(make(files, tokenizer, tmp_path / "cache")) == pairs


def test_new_cache_is_opened_under_lock(files, tokenizer, tmp_path, monkeypatch):
    other = write(tmp_path / "other", TARGET, SOURCE)
    lock = token_cache.folder_lock

    @contextlib.contextmanager
    def lock_before_another(folder):
        with lock(folder):
            yield
        monkeypatch.setattr(token_cache, "folder_lock", lock)
        make(other, tokenizer, folder)

    monkeypatch.setattr(token_cache, "folder_lock", lock_before_another)
    found = make(files, tokenizer, tmp_path / "cache")
    assert found.digest == make(files, tokenizer, tmp_path / "expected").digest


def change_text(files):
    path = files[1][2]
    path.write_bytes(path.read_bytes().replace(b"mots", b"noms", 1))


def damage(path):
    content = path.read_bytes()
    path.unlink()  # the open cache keeps the file it has mapped
    path.write_bytes(content[:-1])


@pytest.mark.parametrize("change", ["text", "tokenizer", "number of files", "damage"])
def test_changed_inputs_make_cache_again(
    cache, files, tokenizer, tmp_path, change, capsys
):
    if change == "text":
        change_text(files)
    elif change == "tokenizer":
        tokenizer = Tokenizer.train(lines=[*SOURCE, *TARGET], vocabulary_size=301)
    elif change == "damage":
        damage(cache.folder / "token_cache.ids")
    else:
        files = [side[1:] for side in files]
    again = make(files, tokenizer, cache.folder, progress=sys.stderr)
    assert "is made again: " in capsys.readouterr().err
    fresh = make(files, tokenizer, tmp_path / "fresh")
    assert len(contents(again.folder)) == len(contents(fresh.folder)), "no old file"
    found = [batches_of(each, tokenizer, 30)[1] for each in (again, fresh)]
    assert_same_batches(*found)


def test_other_files_survive_new_cache(cache, files, tokenizer):
    others = ["cache-notes.txt", "mine.ids", ".notes.0123456789ab.ids", "ids-1-2.bin"]
    for name in others:
        (cache.folder / name).write_text("mine")
    change_text(files)
    again = make(files, tokenizer, cache.folder)
    assert {path.name for path in again.folder.iterdir()} == {
        *others,
        ".lock",
        "token_cache.ids",
    }
    assert [(again.folder / name).read_text() for name in others] == ["mine"] * 4


def test_open_cache_survives_new_one(cache, files, tokenizer):
    data, expected = batches_of(cache, tokenizer)
    change_text(files)
    make(files, tokenizer, cache.folder)
    assert_same_batches(itertools.islice(data, len(expected)), expected)


def test_replaced_cache_is_not_mapped(cache, files, tokenizer, monkeypatch):
    """Windows would refuse to replace it."""
    maps, replace, memmap = [], os.replace, np.memmap

    def map_file(*arguments):
        mapped = memmap(*arguments)
        maps.append(weakref.ref(mapped))
        return mapped

    def refuse_mapped(source, target):
        if any(each() is not None for each in maps):
            raise PermissionError(13, "Access is denied", str(target))
        replace(source, target)

    monkeypatch.setattr(np, "memmap", map_file)
    monkeypatch.setattr(os, "replace", refuse_mapped)
    change_text(files)
    assert make(files, tokenizer, cache.folder).digest != cache.digest
    assert len(maps) == 2 and maps[0]() is None


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_maker_leaves_whole_cache(tmp_path):
    assert int(run(Path(__file__).with_name("killed_making.py"), tmp_path)) > 12


def write_whole(folder, lines):
    paths = [folder / "source", folder / "target"]
    for path, write in zip(paths, (str, str.upper), strict=True):
        path.write_text("\n".join(map(write, lines)))
    return paths


def test_cut_and_damaged_files_are_refused(cache):
    path = cache.folder / "token_cache.ids"
    content = path.read_bytes()
    damaged = [content[:size] for size in (0, 1, 32, 40, 1000, -1)]
    for place in (*range(0, len(content), len(content) // 9), -41, -33, -1):
        damaged.append(bytearray(content))
        damaged[-1][place] ^= 16
    for changed in damaged:
        path.unlink()  # the open cache keeps the file it has mapped
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=f"{path} is damaged or incomplete: "):
            TokenCache(cache.folder)


def test_progress_is_printed_on_stream(files, tokenizer, tmp_path, capsys):
    make(files, tokenizer, tmp_path / "cache", progress=sys.stderr)
    line = capsys.readouterr().err
    assert re.fullmatch(r"Tokenising: 111 of 111 lines, \S+ lines/s\n", line)


def test_large_vocabularies_use_int32(tokenizer, files, tmp_path, monkeypatch):
    monkeypatch.setattr(Tokenizer, "vocabulary_size", 70_000)
    cache = make(files, tokenizer, tmp_path / "cache")
    assert b'"dtype": "<i4"' in (cache.folder / "token_cache.ids").read_bytes()
    corpus = ParallelCorpus.from_files(*files)
    found = [batches_of(each, tokenizer, 20)[1] for each in (cache, corpus)]
    assert_same_batches(*found)
