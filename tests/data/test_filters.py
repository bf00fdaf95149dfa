import itertools
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_vanilla.data import ParallelCorpus, TokenCache, batches
from keras_vanilla.data.filters import repeated_pairs, shared_sources
from keras_vanilla.data.id_store import IdStore, flat_ids
from keras_vanilla.tokenizer import Tokenizer

WORDS = ["one two three", "four five", "six seven eight nine", "ten"]
INVISIBLE = "\u200b"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(WORDS, vocabulary_size=280)


def quiet_batches(corpus, tokenizer, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return batches(corpus, tokenizer, shuffle=False, **settings)


def lines_of(data):
    return sorted(line for step in range(len(data)) for line in data.line_numbers(step))


@pytest.fixture(params=["memory", "files"])
def corpus_of(request, tmp_path, tokenizer):
    """Makes a corpus of some pairs."""

    def make(sources, targets):
        if request.param == "memory":
            return ParallelCorpus(sources, targets)
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        files = [folder / "source", folder / "target"]
        for file, lines in zip(files, (sources, targets), strict=True):
            file.write_text("\n".join(lines))
        return TokenCache.make(*files, tokenizer, folder / "cache")

    return make


@pytest.mark.parametrize("side", [0, 1])
def test_pairs_emptied_by_normaliser_are_left_out(corpus_of, tokenizer, side):
    sides = [[*WORDS, " "], [*WORDS, "one"]]
    sides[side][2] = INVISIBLE
    corpus = corpus_of(*sides)
    message = "pairs have no token on one side and are left out: lines 3[,.]"
    with pytest.warns(UserWarning, match=message) as caught:
        data = batches(corpus, tokenizer, shuffle=False)
    assert caught[0].filename == __file__
    assert data.report == {"empty": [3, 5]} and lines_of(data) == [1, 2, 4]
    labels = np.concatenate([labels[:, 0] for _, labels, _ in data])
    assert tokenizer.end_id not in labels


def test_only_emptied_pairs_are_refused(corpus_of, tokenizer):
    corpus = corpus_of([INVISIBLE, "one"], ["one", INVISIBLE])
    with pytest.warns(UserWarning, match="2 of 2 pairs"):
        with pytest.raises(ValueError, match="no pair is left of 2: 2 empty"):
            batches(corpus, tokenizer)


def test_length_ratio(corpus_of, tokenizer):
    (longer,) = tokenizer.encode(["one two three four five"])
    (shorter,) = tokenizer.encode(["ten"])
    ratio = (len(longer) - 1) / (len(shorter) - 1)
    corpus = corpus_of(
        ["one", "one two three four five", "ten", "one " * 9],
        ["one", "ten", "one two three four five", "one"],
    )
    data = quiet_batches(corpus, tokenizer)
    assert data.report == {} and lines_of(data) == [1, 2, 3, 4]
    data = quiet_batches(corpus, tokenizer, max_length_ratio=ratio)
    assert data.report == {"length ratio": [4]}
    data = quiet_batches(corpus, tokenizer, max_length_ratio=ratio - 0.01)
    assert data.report == {"length ratio": [2, 3, 4]} and lines_of(data) == [1]
    with pytest.warns(UserWarning, match=r"3 of 4 pairs have more than 1.1 times the "):
        batches(corpus, tokenizer, max_length_ratio=1.1)


def test_duplicates(corpus_of, tokenizer):
    sources = ["one", "two", "one", "one", f"two{INVISIBLE}", "two"]
    targets = ["six", "six", "six", "ten", "six", "six "]
    corpus = corpus_of(sources, targets)
    data = quiet_batches(corpus, tokenizer)
    assert data.report == {} and len(lines_of(data)) == 6
    message = r"3 of 6 pairs occurred before and are left out: lines 3, 5, 6\."
    with pytest.warns(UserWarning, match=message):
        data = batches(corpus, tokenizer, shuffle=False, drop_duplicates=True)
    assert data.report == {"duplicate": [3, 5, 6]} and lines_of(data) == [1, 2, 4]
    assert data.tokens_per_epoch == sum(
        labels.astype(bool).sum() for _, labels, _ in data
    )


def store_of(pairs):
    """An `IdStore` of (source, target) ids."""
    sizes = SimpleNamespace(vocabulary_size=1 << 17, target_vocabulary_size=1 << 17)
    ids, lengths = flat_ids(*zip(*pairs, strict=True), sizes)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return IdStore(ids, offsets, int(lengths.max()))


def test_repeated_pairs_equal_a_set():
    draw = np.random.default_rng(0)
    pairs = [
        tuple(tuple(draw.integers(0, 3, draw.integers(1, 5))) for _ in range(2))
        for _ in range(3000)
    ]
    chosen, seen, expected = range(5, len(pairs), 2), set(), []
    for number in chosen:
        expected += [number] if pairs[number] in seen else []
        seen.add(pairs[number])
    found = repeated_pairs(store_of(pairs), np.array(chosen))
    assert found.tolist() == expected and 99 < len(expected) < 1400


def test_similar_sequences_have_different_hashes():
    ids = [0, 1, 2, 3, 65_535, 65_536, 131_071]
    rows = [row for n in (1, 2, 3) for row in itertools.product(ids, repeat=n)]
    pairs = [(row, (3,)) for row in rows] + [((3,), row) for row in rows if row != (3,)]
    assert not len(repeated_pairs(store_of(pairs), np.arange(len(pairs))))


def test_shared_sources(corpus_of, tokenizer):
    """Blank sources, and those that the normaliser empties, are not shared."""
    corpus = corpus_of([*WORDS, " ", INVISIBLE], [*WORDS, "x", "y"])
    validation = corpus_of(
        ["six", " ", "four five", "unseen " * 9, f"ten{INVISIBLE}", INVISIBLE],
        ["one two three", "x", "another one", "ten", "six", "y"],
    )
    one, other = (quiet_batches(each, tokenizer) for each in (validation, corpus))
    assert one.shared_sources(other) == [3, 5]
    assert other.shared_sources(one) == [2, 4]
    stores = [each.id_store(tokenizer) for each in (validation, corpus)]
    assert shared_sources(*stores) == [3, 5]
