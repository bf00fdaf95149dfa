import gzip
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_vanilla.data import ParallelCorpus, TokenCache, batches
from keras_vanilla.data.cache import pairs as cached_pairs
from keras_vanilla.data.cache import parts, progress, token_cache, workers
from keras_vanilla.tokenizer import Tokenizer

SHARDS = (37, 1, 29, 44)  # lines of each
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
    """Paths of the shards of each side, the last one gzipped."""
    folder.mkdir()
    paths = []
    for name, side in zip("st", sides, strict=True):
        lines = iter(side)
        paths.append([folder / f"{name}{n}" for n in range(len(SHARDS) - 1)])
        paths[-1].append(folder / f"{name}.gz")
        for path, count in zip(paths[-1], SHARDS, strict=True):
            content = "".join(f"{s}\n" for s in itertools.islice(lines, count)).encode()
            packed = gzip.compress(content) if path.suffix else content
            path.write_bytes(packed)
    return paths


def make(files, tokenizer, folder, **options):
    options = {"max_tokens": MAX_TOKENS, "processes": 1, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"static_shapes": True}])
@pytest.mark.parametrize("max_tokens", [MAX_TOKENS, 19])
def test_a_cache_gives_the_batches_of_the_corpus_in_memory(
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
    assert len(cache) == len(corpus) - 1, "one is too long for it"
    for step in range(found.steps_per_epoch):
        assert found.line_numbers(step) == expected.line_numbers(step)


def test_anybody_can_read_the_records(cache, tokenizer):
    files = sorted(map(str, cache.folder.glob("*.tfrecord")))
    assert len(files) == len(SHARDS)
    feature = tf.io.RaggedFeature(tf.int64)
    features = {"source_ids": feature, "target_ids": feature, "line": feature}
    found = tf.data.TFRecordDataset(files).map(
        lambda record: tf.io.parse_single_example(record, features)
    )
    expected = [n for n in range(111) if n not in (5, 40, 80)]
    for number, pair in zip(expected, found, strict=True):
        assert pair["line"].numpy().tolist() == [number + 1]
        sides = [pair[name].numpy().tolist() for name in ("source_ids", "target_ids")]
        assert sides[0] == tokenizer.encode([SOURCE[number]])[0]
        assert sides[1] == tokenizer.encode_target([TARGET[number]])[0]


def test_pairs_left_out_are_reported_with_their_file_and_line(
    files, tokenizer, tmp_path
):
    with pytest.warns(UserWarning) as caught:
        cache = TokenCache.make(*files, tokenizer, tmp_path / "c", MAX_TOKENS, 1)
    assert cache.report == {"empty": [6, 41], "too long": [81]}
    assert {warning.filename for warning in caught} == {__file__}
    messages = sorted(str(warning.message) for warning in caught)
    assert re.fullmatch(
        r"2 of 111 pairs are left out, empty: .*s0 and .*t0, line 6; .*s2 and .*t2, "
        r"line 3\.",
        messages[1],
    )
    assert re.fullmatch(
        r"1 of 111 pairs are left out, too long: .*s\.gz and .*t\.gz, line 14\.",
        messages[0],
    )


def test_a_line_is_placed_in_its_shard(cache):
    ends = list(itertools.accumulate(SHARDS))
    assert cache.place(1).endswith("t0, line 1")
    assert cache.place(ends[0]).endswith(f"t0, line {SHARDS[0]}")
    assert cache.place(ends[0] + 1).endswith("t1, line 1")
    assert cache.place(ends[-1]).endswith(f"t.gz, line {SHARDS[-1]}")
    for line in (0, ends[-1] + 1):
        with pytest.raises(ValueError, match=f"from 1 to 111. Received: {line}"):
            cache.place(line)


@pytest.mark.parametrize("lines", [7, 1000])
def test_parts_processes_and_places_of_the_text_change_no_batch(
    cache, files, tokenizer, tmp_path, monkeypatch, lines
):
    monkeypatch.setattr(token_cache, "LINES_OF_A_PART", lines)
    monkeypatch.setattr(parts, "LINES_AT_ONCE", 5)
    moved = (tmp_path / "text").rename(tmp_path / "moved")
    files = [[moved / path.name for path in side] for side in files]
    other = make(files, tokenizer, tmp_path / "other", processes=3)
    assert other.report == cache.report
    found = [batches_of(each, tokenizer, 30)[1] for each in (cache, other)]
    assert_same_batches(*found)
    if lines == 1000:
        same = make(files, tokenizer, tmp_path / "again", processes=1)
        assert same.digest == other.digest


def test_an_unchanged_cache_is_used_again_without_reading_its_files(
    cache, files, tokenizer, monkeypatch
):
    before, said = contents(cache.folder), []

    def refuse(*_):
        raise AssertionError("nothing is to be read or made")

    monkeypatch.setattr("keras_vanilla.data.shards._digest", refuse)
    monkeypatch.setattr(token_cache, "make_parts", refuse)
    monkeypatch.setattr(token_cache.manifests, "write", refuse)
    make(files, tokenizer, cache.folder, progress=said.append)
    assert contents(cache.folder) == before and not said


def test_files_with_a_new_time_are_read_and_found_to_be_the_same(
    cache, files, tokenizer, monkeypatch
):
    monkeypatch.setattr(token_cache, "make_parts", None)
    os.utime(files[0][0], ns=(1, 1))
    again = make(files, tokenizer, cache.folder)
    assert again.digest == cache.digest
    monkeypatch.setattr("keras_vanilla.data.shards._digest", None)
    make(files, tokenizer, cache.folder)  # the new time is noted


def change_text(files, folder):
    path = files[1][2]
    path.write_bytes(path.read_bytes().replace(b"mots", b"noms", 1))
    return {}, "t2 has changed"


def change_max_tokens(files, folder):
    return {"max_tokens": 30}, "`max_tokens` has changed"


def change_tokenizer(files, folder):
    other = Tokenizer.train(lines=[*SOURCE, *TARGET], vocabulary_size=301)
    return {"tokenizer": other}, "the tokenizer has changed"


def change_number_of_files(files, folder):
    for side in files:
        side.pop(1)
    return {}, "made of 8 files, not of 6"


def lose_a_part(files, folder):
    next(folder.glob("*2.tfrecord")).unlink()
    return {}, "00002.tfrecord is missing"


def cut_a_part(files, folder):
    part = next(folder.glob("*2.tfrecord"))
    part.write_bytes(part.read_bytes()[:-1])
    return {}, r"00002.tfrecord has \d+ bytes, not \d+"


@pytest.mark.parametrize(
    "change",
    [
        change_text,
        change_max_tokens,
        change_tokenizer,
        change_number_of_files,
        lose_a_part,
        cut_a_part,
    ],
)
def test_a_cache_of_something_else_is_made_again_saying_why(
    cache, files, tokenizer, tmp_path, change
):
    options, message = change(files, cache.folder)
    options = {"tokenizer": tokenizer, **options}
    said = []
    again = make(files, folder=cache.folder, progress=said.append, **options)
    assert re.search(f"is made again: .*{message}", said[0])
    fresh = make(files, folder=tmp_path / "fresh", **options)
    assert contents(again.folder).keys() == contents(fresh.folder).keys()
    tokenizer, limit = options["tokenizer"], again.max_tokens
    found = [
        batches_of(each, tokenizer, 30, max_tokens=limit)[1] for each in (again, fresh)
    ]
    assert_same_batches(*found)


def test_the_making_goes_on_where_it_was_killed(tokenizer, tmp_path):
    lines = [f"{n} some words" for n in range(30_000)]
    files = write_whole(tmp_path, lines)
    model = tmp_path / "tokenizer.model"
    model.write_bytes(tokenizer.source_model)
    command = [
        sys.executable,
        Path(__file__).parents[2] / "support" / "killed_making.py",
    ]
    command += [*files, model, tmp_path / "cache"]
    settings = {"text": True, "env": dict(os.environ)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **settings) as making:
        while not list(tmp_path.glob("cache/*.json")):
            assert making.stdout.readline(), "it ended before it was killed"
        making.send_signal(signal.SIGKILL)
    with pytest.raises(FileNotFoundError, match="holds no token cache that is whole"):
        TokenCache.open(tmp_path / "cache")
    finished = len(list(tmp_path.glob("cache/*.json")))
    assert 0 < finished < 43
    done = subprocess.run(command, capture_output=True, check=True, **settings)
    left = int(re.findall(r"of ([\d,]+) lines", done.stdout)[-1].replace(",", ""))
    assert left <= 30_000 - 700 * (finished - 1)  # the last part has fewer lines
    cache = TokenCache.open(tmp_path / "cache")
    assert len(cache) == 30_000
    assert not list(cache.folder.glob("*.partial")), "nothing is left lying about"
    corpus = ParallelCorpus.from_files(*files)
    found = [batches_of(each, tokenizer, 50)[1] for each in (cache, corpus)]
    assert_same_batches(*found)


def write_whole(folder, lines):
    paths = [folder / "source", folder / "target"]
    for path in paths:
        path.write_text("\n".join(lines))
    return paths


def test_a_worker_that_dies_or_fails_is_told(files, tokenizer, tmp_path, monkeypatch):
    files[1][2].write_bytes(b"\xff\n" * SHARDS[2])
    with pytest.raises(ValueError, match=r"t2, line 1: byte 0xff"):
        make(files, tokenizer, tmp_path / "cache", processes=2)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="ended before .* exit code 1"):
        make(files, tokenizer, tmp_path / "other", processes=2)


def test_a_file_that_changes_while_it_is_read_is_refused(
    files, tokenizer, tmp_path, monkeypatch
):
    make_parts = token_cache.make_parts

    def change(*arguments):
        os.utime(files[0][1], ns=(1, 1))
        return make_parts(*arguments)

    monkeypatch.setattr(token_cache, "make_parts", change)
    with pytest.raises(ValueError, match="s1 has changed while it was read"):
        make(files, tokenizer, tmp_path / "cache")
    assert not (tmp_path / "cache" / "cache.json").exists()


@pytest.mark.parametrize("pattern", ["*1.tfrecord", "*.index"])
def test_a_damaged_file_is_refused_by_name(cache, tokenizer, pattern):
    path = next(cache.folder.glob(pattern))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)
    with pytest.raises(Exception, match=r"cache-.* is damaged: the record of line \d+"):
        batches_of(TokenCache.open(cache.folder), tokenizer)
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=rf"{path} has \d+ bytes, not \d+;"):
        TokenCache.open(cache.folder)
    path.unlink()
    with pytest.raises(ValueError, match=f"{path} is missing;"):
        TokenCache.open(cache.folder)


def test_any_byte_of_an_index_that_is_turned_is_seen(cache, tokenizer):
    path = next(cache.folder.glob("*.index"))
    content = path.read_bytes()
    rows = np.arange(len(cache))
    for byte in range(0, 3 * parts.ROW.itemsize):
        turned = bytearray(content)
        turned[byte] ^= 1
        path.write_bytes(turned)
        with pytest.raises(ValueError, match="is damaged"):
            cache.id_store(tokenizer).read(rows)
    path.write_bytes(content)
    cache.id_store(tokenizer).read(rows)


def test_many_parts_are_not_open_at_once(files, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(token_cache, "LINES_OF_A_PART", 1)
    monkeypatch.setattr(cached_pairs, "OPEN_FILES", 3)
    examples = make(files, tokenizer, tmp_path / "cache").id_store(tokenizer)
    before = len(os.listdir("/proc/self/fd"))
    examples.read(np.arange(len(examples)))
    assert len(os.listdir("/proc/self/fd")) <= before + 3


def test_manifests_of_no_cache_and_of_another_version_are_refused(cache, tokenizer):
    path = cache.folder / "cache.json"
    manifest = json.loads(path.read_text())
    manifest["settings"]["version"] = 7
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="version 1. Received: version 7"):
        TokenCache.open(cache.folder)
    for content in ("{", "[]", "{}"):
        path.write_text(content)
        with pytest.raises(ValueError, match="cache.json is no manifest"):
            TokenCache.open(cache.folder)
    with pytest.raises(FileNotFoundError, match="nowhere holds no token cache"):
        TokenCache.open(cache.folder / "nowhere")


def test_another_tokenizer_and_longer_pairs_are_refused(cache, tokenizer):
    other = Tokenizer.train(lines=SOURCE, vocabulary_size=290)
    with pytest.raises(ValueError, match="made with another tokenizer"):
        batches(cache, other, max_tokens=MAX_TOKENS)
    with pytest.raises(ValueError, match="at most 41, .*Received: 42"):
        batches(cache, tokenizer, max_tokens=MAX_TOKENS + 1)


def test_a_text_with_nothing_to_keep_is_refused(tokenizer, tmp_path):
    files = write_whole(tmp_path, ["long " * 60, " "])
    with pytest.raises(ValueError, match="none of 2 pairs has text .* 41 tokens"):
        make(files, tokenizer, tmp_path / "cache")
    with pytest.raises(ValueError, match="none of 0 pairs"):
        make(write_whole(tmp_path, []), tokenizer, tmp_path / "cache")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_tokens": 1}, "`max_tokens` .* 2. Received: 1"),
        ({"processes": 0}, "`processes` .* 1. Received: 0"),
    ],
)
def test_arguments_out_of_range_are_refused(
    files, tokenizer, tmp_path, options, message
):
    with pytest.raises(ValueError, match=message):
        make(files, tokenizer, tmp_path / "cache", **options)


def test_progress_says_how_many_lines_of_all_are_done_a_second(monkeypatch):
    seconds = iter([100.0, 102.0, 106.0, 108.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    said = []
    making = progress.MakingProgress(4000, said.append)
    for lines in (1000, 2000, 1000):
        making(lines)
    assert said == [
        "3,000 of 4,000 lines are tokenised, 500 lines/s.",
        "4,000 of 4,000 lines are tokenised, 500 lines/s.",
    ]


def test_a_worker_loads_neither_keras_nor_tensorflow():
    program = workers._PROGRAM.replace("work(sys.stdin", "assert work; print(sys.stdin")
    program += "assert not {'keras', 'tensorflow', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
