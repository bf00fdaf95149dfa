import itertools
import subprocess
import sys

import numpy as np
import pytest

from keras_vanilla.data import ParallelCorpus, TokenCache, batches
from keras_vanilla.distribution import replicas
from keras_vanilla.tokenizer import Tokenizer

LINES = [f"line {n} has " + "some words " * (n * 7 % 13) for n in range(97)]
OTHER = [f"ligne {n} a " + "des mots " * (n * 5 % 17) for n in range(97)]
SETTINGS = {"tokens_per_batch": 400, "sampling": 0.2}


@pytest.fixture(scope="module")
def corpus():
    return ParallelCorpus(LINES, OTHER)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([*LINES, *OTHER], vocabulary_size=293)


def take(data, count):
    """(source ids, target ids, labels) of some batches."""
    found = itertools.islice(data, count)
    return [(i["source_ids"], i["target_ids"], labels) for i, labels, _ in found]


def same(one, other):
    arrays = zip(itertools.chain(*one), itertools.chain(*other), strict=True)
    return all(a.shape == b.shape and (a == b).all() for a, b in arrays)


def test_epochs_have_different_segmentations(corpus, tokenizer):
    data = batches(corpus, tokenizer, **SETTINGS)
    found = take(data, 2 * data.steps_per_epoch)
    epochs = found[: data.steps_per_epoch], found[data.steps_per_epoch :]
    segmentations = []
    for epoch in epochs:
        labels = [row for _, _, labels in epoch for row in labels]
        assert sorted(tokenizer.decode(labels)) == sorted(map(str.strip, OTHER))
        sources = [row for sources, _, _ in epoch for row in sources]
        assert sorted(tokenizer.decode(sources)) == sorted(map(str.strip, LINES))
        segmentations.append({tuple(row[row != 0]) for row in labels})
    assert len(segmentations[0] - segmentations[1]) > 50
    for _, target_ids, labels in found:
        tokens = labels[:, :-1] * (labels[:, 1:] != 0)
        assert (target_ids[:, 1:] == tokens).all() and (target_ids[:, 0] == 2).all()


def test_sampling_depends_on_seed_and_step(corpus, tokenizer, tmp_path):
    found = take(batches(corpus, tokenizer, **SETTINGS), 9)
    again = batches(corpus, tokenizer, **SETTINGS)
    again.start_at(4)
    assert same(take(again, 5), found[4:])
    assert same(take(again.dataset().as_numpy_iterator(), 5), found[4:])
    other = batches(corpus, tokenizer, seed=1, **SETTINGS)
    assert not same(take(other, 1), found[:1]) and other.digest != again.digest
    (tmp_path / "a").write_text("\n".join(LINES))
    (tmp_path / "b").write_text("\n".join(OTHER))
    cache = TokenCache.make(tmp_path / "a", tmp_path / "b", tokenizer, tmp_path / "c")
    assert same(take(batches(cache, tokenizer, **SETTINGS), 9), found)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_batches_keep_token_budget(corpus, tokenizer, alpha):
    settings = {**SETTINGS, "sampling": alpha, "max_tokens": 60}
    plain = batches(corpus, tokenizer, **settings | {"sampling": None})
    for static in (False, True):
        data = batches(corpus, tokenizer, static_shapes=static, **settings)
        assert data.steps_per_epoch > plain.steps_per_epoch
        found = take(data, data.steps_per_epoch)
        assert max(labels.size for *_, labels in found) <= 400
        assert max(ids.shape[1] for batch in found for ids in batch) <= 60
    assert len({labels.shape for *_, labels in found}) <= 7


def test_processes_draw_the_same_rows(corpus, tokenizer, monkeypatch):
    rows = []
    for first in range(2):
        found = replicas.Replicas(2, first, 1)
        monkeypatch.setattr(replicas, "replicas_in_force", lambda found=found: found)
        monkeypatch.setattr("keras_vanilla.data.batching._strategy_in_force", list)
        rows.append(take(batches(corpus, tokenizer, **SETTINGS), 5))
    monkeypatch.undo()
    whole = take(batches(corpus, tokenizer, **SETTINGS), 5)
    for parts, arrays in zip(zip(*rows, strict=True), whole, strict=True):
        for part, array in zip(zip(*parts, strict=True), arrays, strict=True):
            joined = np.concatenate(part)
            assert (joined[: len(array)] == array).all()
            assert (joined[len(array) :] == 0).all()


@pytest.mark.full
def test_new_process_draws_the_same(capsys):
    """SentencePiece's own sampling does not, which is why it is not used."""
    code = f"""
import hashlib, itertools
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
lines = {LINES!r}
digest = hashlib.sha256()
tokenizer = Tokenizer.train(lines, 288)
data = batches(ParallelCorpus(lines, lines), tokenizer, sampling=0.1)
for inputs, _, _ in itertools.islice(data, 5):
    digest.update(inputs["source_ids"].tobytes())
print(digest.hexdigest())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    exec(code, {})
    assert done.stdout == capsys.readouterr().out != ""
