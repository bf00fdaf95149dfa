import itertools
import re
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.distribution import replicas
from keras_vanilla.tokenizer import Tokenizer

LINES = [f"line {n} has " + "some words " * (n * 7 % 13) for n in range(97)]
OTHER = [f"ligne {n} a " + "des mots " * (n * 5 % 17) for n in range(97)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(lines=[*LINES, *OTHER], vocabulary_size=293)


@pytest.fixture(scope="module")
def corpus():
    return ParallelCorpus(LINES, OTHER)


def as_numpy(element):
    inputs, labels, weights = element
    ids = inputs["source_ids"], inputs["target_ids"]
    return [np.asarray(array) for array in (*ids, labels, weights)]


def take(dataset, count):
    found = [as_numpy(element) for element in itertools.islice(dataset, count)]
    assert len(found) == count
    return found


def epoch(dataset):
    return take(dataset, dataset.steps_per_epoch)


def pairs_of(batch):
    """The (source ids, target ids) of a batch, taken apart one by one."""
    sources, _, labels, weights = batch
    for source, label, weight in zip(sources, labels, weights, strict=True):
        if weight.sum():
            yield (
                tuple(int(i) for i in source if i != 0),
                tuple(int(i) for i in label if i != 0),
            )


def all_pairs(found):
    return sorted(pair for batch in found for pair in pairs_of(batch))


def encoded(corpus, tokenizer, max_tokens=10**9):
    sides = (
        tokenizer.encode(list(corpus.sources)),
        tokenizer.encode_target(list(corpus.targets)),
    )
    pairs = [tuple(map(tuple, pair)) for pair in zip(*sides, strict=True)]
    return sorted(pair for pair in pairs if max(map(len, pair)) <= max_tokens)


def assert_same(one, other):
    for left, right in zip(one, other, strict=True):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b)


OPTIONS = st.fixed_dictionaries(
    {
        "tokens_per_batch": st.integers(1, 700),
        "shuffle": st.booleans(),
        "seed": st.integers(0, 3),
        "static_shapes": st.booleans(),
        "widths": st.sampled_from([None, (3, 11, 29, 256), (256,), (5, 1000)]),
    }
)
PAIRS = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(OTHER)), min_size=1, max_size=30
)


@settings(max_examples=40, deadline=None)
@given(PAIRS, OPTIONS)
def test_epoch_has_every_pair_once(tokenizer, pairs, options):
    corpus = ParallelCorpus(*zip(*pairs, strict=True))
    dataset = batches(corpus, tokenizer, **options)
    expected = encoded(corpus, tokenizer)
    assert all_pairs(epoch(dataset)) == expected
    if options["shuffle"]:
        second = take(dataset, 2 * dataset.steps_per_epoch)[dataset.steps_per_epoch :]
        assert all_pairs(second) == expected


@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_targets_and_weights_are_those_of_labels(
    corpus, tokenizer, shuffle, static_shapes
):
    data = batches(corpus, tokenizer, 331, shuffle=shuffle, static_shapes=static_shapes)
    tokens = 0
    for source_ids, targets, labels, weights in epoch(data):
        assert [a.dtype for a in (source_ids, targets, labels)] == ["int32"] * 3
        assert weights.dtype == np.float32
        np.testing.assert_array_equal(weights, labels != tokenizer.pad_id)
        tokens += weights.sum()
        for target, label in zip(targets, labels, strict=True):
            length = np.count_nonzero(label)
            assert not target[length:].any() and not label[length:].any()
            if length:
                assert target[0] == tokenizer.start_id
                assert label[length - 1] == tokenizer.end_id
                assert target[1:length].tolist() == label[: length - 1].tolist()
    expected = sum(map(len, tokenizer.encode_target(list(corpus.targets))))
    assert tokens == data.tokens_per_epoch == expected


@pytest.mark.parametrize("pad_id", [0, 3])
def test_pad_id_is_that_of_tokenizer(corpus, tokenizer, pad_id):
    class Elsewhere:
        """The same pieces under other special ids: pad and end change places."""

        digest = "other special ids"
        vocabulary_size = target_vocabulary_size = tokenizer.vocabulary_size
        start_id, end_id = tokenizer.start_id, 3 - pad_id

        def __init__(self):
            self.pad_id = pad_id

        def encode(self, lines):
            return [ids[:-1] + [self.end_id] for ids in tokenizer.encode(lines)]

        encode_target = encode

    for source_ids, target_ids, labels, _ in epoch(batches(corpus, Elsewhere(), 331)):
        padded = labels == pad_id
        assert (target_ids == pad_id).tolist() == padded.tolist()
        assert not padded[:, 0].any() and not (source_ids[:, 0] == pad_id).any()
        assert ((labels == 3 - pad_id).sum(axis=1) == 1).all()


def test_step_depends_on_seed_and_number(corpus, tokenizer):
    steps = batches(corpus, tokenizer, 331).steps_per_epoch
    dataset = batches(corpus, tokenizer, 331, seed=5)
    found = take(dataset, 3 * steps)
    assert_same(take(dataset, 3 * steps), found)
    assert_same(take(batches(corpus, tokenizer, 331, seed=5), steps), found[:steps])
    for first in (1, steps - 1, steps, steps + 2, 2 * steps - 1):
        later = batches(corpus, tokenizer, 331, seed=5, first_step=first)
        assert later.steps_per_epoch == steps
        assert_same(take(later, steps), found[first : first + steps])


@pytest.mark.parametrize("mapped", [False, True])
def test_start_at_moves_new_iterators(corpus, tokenizer, mapped):
    plain = batches(corpus, tokenizer, 331, seed=5)
    data = plain.map(lambda *batch: batch) if mapped else plain
    steps = len(data)
    assert steps == data.steps_per_epoch
    found = take(data, 3 * steps)
    dataset, opened_before = data.dataset(), iter(data)
    next(opened_before)
    for first in (1, 2 * steps - 1, 0):
        data.start_at(first)
        assert_same(take(data, steps), found[first : first + steps])
        assert_same(take(dataset, 2), found[first : first + 2])
    assert_same(take(opened_before, 3), found[1:4])
    data.start_at(3)
    opened_before = iter(data)
    data.start_at(0)
    assert_same(take(opened_before, 2), found[3:5])  # though nothing was read yet
    data.start_at(4)
    assert plain.first_step() == (0 if mapped else 4)


@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_dataset_equals_numpy_batches(corpus, tokenizer, shuffle, static_shapes):
    settings = {"shuffle": shuffle, "static_shapes": static_shapes, "first_step": 2}
    found = batches(corpus, tokenizer, 331, **settings)
    count = found.steps_per_epoch - 2
    assert_same(take(found.dataset(), count), take(found, count))


def halved(inputs, labels, weights):
    return inputs, labels, weights / 2


def test_map_is_applied_at_any_step(corpus, tokenizer):
    plain = batches(corpus, tokenizer, 331, seed=5, first_step=4)
    mapped = plain.map(halved).map(halved)
    for first in (4, 9):
        plain.start_at(first)
        mapped.start_at(first)
        expected = [[*rest, weights / 4] for *rest, weights in take(plain, 3)]
        assert_same(take(mapped, 3), expected)
        assert_same(take(mapped.dataset(), 3), expected)
    assert mapped.steps_per_epoch == plain.steps_per_epoch and mapped.endless
    assert mapped.line_numbers(5) == plain.line_numbers(5)
    assert int(mapped.dataset().cardinality()) == -1


def test_digest_covers_every_setting(corpus, tokenizer):
    one = batches(corpus, tokenizer, 331)
    same = batches(ParallelCorpus(LINES, OTHER), tokenizer, 331, first_step=3)
    assert one.digest == same.digest
    other = Tokenizer.train([*LINES, *OTHER], vocabulary_size=294)
    different = [
        one,
        one.map(halved),
        batches(ParallelCorpus(LINES[1:], OTHER[1:]), tokenizer, 331),
        batches(corpus, other, 331),
        batches(corpus, tokenizer, 332),
        batches(corpus, tokenizer, 331, max_tokens=250),
        batches(corpus, tokenizer, 331, widths=(64, 256)),
        batches(corpus, tokenizer, 331, seed=1),
        batches(corpus, tokenizer, 331, shuffle=False),
        batches(corpus, tokenizer, 331, static_shapes=True),
        batches(corpus, tokenizer, 331, sampling=0.1),
        batches(corpus, tokenizer, 331, sampling=0.2),
        batches(corpus, tokenizer, 331, max_length_ratio=99.0),
        batches(corpus, tokenizer, 331, drop_duplicates=True),
        batches(corpus, tokenizer, 331, max_length_ratio=99.0, drop_duplicates=True),
    ]
    assert len({each.digest for each in different}) == len(different)


@pytest.mark.parametrize("shuffle", [False, True])
def test_line_numbers_are_those_of_pairs(tokenizer, shuffle):
    sources = ["", *LINES[:20], " ", *LINES[20:]]
    targets = ["x", *OTHER[:20], "y", *OTHER[20:]]
    dataset = batches(ParallelCorpus(sources, targets), tokenizer, 331, shuffle=shuffle)
    seen = []
    for step, batch in enumerate(epoch(dataset)):
        lines = dataset.line_numbers(step)
        texts = [[side[line - 1] for line in lines] for side in (sources, targets)]
        ids = tokenizer.encode(texts[0]), tokenizer.encode_target(texts[1])
        assert list(pairs_of(batch)) == [
            tuple(map(tuple, pair)) for pair in zip(*ids, strict=True)
        ]
        seen += lines
    assert sorted(seen) == [n for n in range(1, 100) if n not in (1, 22)]


def on_replicas(monkeypatch, *arguments):
    """Batches are made as for these replicas, without any strategy."""
    found = replicas.Replicas(*arguments)
    monkeypatch.setattr(replicas, "replicas_in_force", lambda: found)
    monkeypatch.setattr(replicas, "distributed_dataset", lambda dataset, _: dataset)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_replicas_share_one_padded_batch(corpus, tokenizer, static_shapes, monkeypatch):
    single = batches(corpus, tokenizer, 331, static_shapes=static_shapes)
    found = epoch(single)
    on_replicas(monkeypatch, 3, 0, 3)
    shared = batches(corpus, tokenizer, 331, static_shapes=static_shapes)
    assert shared.steps_per_epoch == single.steps_per_epoch
    heights = set()
    for alone, together in zip(found, epoch(shared), strict=True):
        height = len(alone[0])
        heights.add(height % 3)
        for one, other in zip(alone, together, strict=True):
            assert len(other) == -(-height // 3) * 3
            np.testing.assert_array_equal(other[:height], one)
            assert not other[height:].any()  # the pad is 0 here
    assert heights == {0, 1, 2}, "all that may be over"


@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize("count, here", [(2, 1), (3, 1), (4, 2), (200, 100)])
def test_processes_share_one_batch(
    corpus, tokenizer, count, here, static_shapes, monkeypatch
):
    options = {"tokens_per_batch": 331, "static_shapes": static_shapes, "seed": 4}
    on_replicas(monkeypatch, count, 0, count)
    whole = epoch(batches(corpus, tokenizer, **options))
    parts = []
    for first in range(0, count, here):
        on_replicas(monkeypatch, count, first, here)
        parts.append(epoch(batches(corpus, tokenizer, **options)))
    for batch, *shares in zip(whole, *parts, strict=True):
        joined = [np.concatenate(arrays) for arrays in zip(*shares, strict=True)]
        assert_same([joined], [batch])
        assert len({len(share[0]) for share in shares}) == 1


def test_epochs_and_seeds_change_order(corpus, tokenizer):
    def order(seed):
        dataset = batches(corpus, tokenizer, 331, seed=seed)
        found = take(dataset, 2 * dataset.steps_per_epoch)
        flat = [
            [pair for batch in part for pair in pairs_of(batch)]
            for part in (found[: len(found) // 2], found[len(found) // 2 :])
        ]
        return len(found), *flat

    steps, first, second = order(1)
    same_steps, other, _ = order(2)
    assert steps == same_steps
    assert first != second and first != other and sorted(first) == sorted(other)


def test_unshuffled_batches_are_one_pass(corpus, tokenizer):
    dataset = batches(corpus, tokenizer, 331, shuffle=False)
    assert int(dataset.dataset().cardinality()) == dataset.steps_per_epoch
    found = [as_numpy(element) for element in dataset]
    assert len(found) == dataset.steps_per_epoch
    other = batches(corpus, tokenizer, 331, shuffle=False, seed=9)
    assert_same(found, [as_numpy(element) for element in other])
    longest = [max(s.shape[1], t.shape[1]) for s, t, _, _ in found]
    assert longest == sorted(longest, reverse=True)
    rest = batches(corpus, tokenizer, 331, shuffle=False, first_step=2)
    assert_same([as_numpy(element) for element in rest], found[2:])


def test_batch_keeps_token_budget_and_bucket(corpus, tokenizer):
    widths = (17, 61, 256)
    for source_ids, target_ids, labels, _ in epoch(
        batches(corpus, tokenizer, 331, widths=widths)
    ):
        lengths = [
            max(map(len, pair))
            for pair in pairs_of((source_ids,) * 2 + (labels, labels))
        ]
        buckets = {next(w for w in widths if length <= w) for length in lengths}
        assert len(buckets) == 1
        assert target_ids.size <= 331
        assert target_ids.shape == labels.shape
        assert target_ids[:, -1].any() and source_ids[:, -1].any(), "no useless column"


def test_pair_above_budget_is_alone(corpus, tokenizer):
    dataset = batches(corpus, tokenizer, tokens_per_batch=1)
    assert dataset.steps_per_epoch == len(corpus)
    assert all(len(labels) == 1 for _, _, labels, _ in epoch(dataset))


@pytest.fixture
def on_jax(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")


@pytest.fixture
def on_a_tpu(monkeypatch):
    in_force = type(tf.distribute.get_strategy())
    monkeypatch.setattr(tf.distribute, "TPUStrategy", in_force)


def test_jax_has_one_shape_per_bucket(corpus, tokenizer, on_jax):
    widths = (17, 61, 256)
    default, chosen, varying = (
        batches(corpus, tokenizer, 331, widths=widths, static_shapes=static)
        for static in (None, True, False)
    )
    assert default.static_shapes and default.digest == chosen.digest != varying.digest
    found = epoch(default)
    shapes = {array.shape for batch in found for array in batch}
    assert shapes == {(331 // width, width) for width in widths}
    assert all(len({array.shape for array in batch}) == 1 for batch in found)
    assert all_pairs(found) == all_pairs(epoch(varying))
    assert any(not weights[-1].any() for *_, weights in found), "some row is padding"


def test_tpu_has_one_shape(corpus, tokenizer, on_a_tpu):
    default = batches(corpus, tokenizer, 700)
    one = batches(corpus, tokenizer, 700, static_shapes=True, widths=[256])
    assert default.digest == one.digest
    assert {labels.shape for _, _, labels, _ in epoch(default)} == {(2, 256)}


def test_element_spec_has_static_shape(corpus, tokenizer):
    one = batches(corpus, tokenizer, 1800, widths=(256,), static_shapes=True)
    many = batches(corpus, tokenizer, 1800)
    for dataset, shape in ((one, [7, 256]), (many, [None, None])):
        inputs, labels, weights = dataset.dataset().element_spec
        assert set(inputs) == {"source_ids", "target_ids"}
        specs = [*inputs.values(), labels, weights]
        assert all(spec.shape.as_list() == shape for spec in specs)
        assert [spec.dtype.name for spec in specs] == ["int32"] * 3 + ["float32"]


def test_drop_remainder_warns_with_count(corpus, tokenizer):
    with pytest.warns(UserWarning, match=r"leaves out (\d+) of 97 pairs") as caught:
        dataset = batches(corpus, tokenizer, 331, drop_remainder=True)
    assert caught[0].filename == __file__
    left_out = int(re.search(r"out (\d+)", str(caught[0].message))[1])
    found = take(dataset, 2 * dataset.steps_per_epoch)
    first, second = found[: len(found) // 2], found[len(found) // 2 :]
    whole = encoded(corpus, tokenizer)
    for part in (first, second):
        kept = all_pairs(part)
        assert len(kept) == len(set(kept)) == len(whole) - left_out
        assert set(kept) < set(whole)
    assert all_pairs(first) != all_pairs(second), "not always the same are left out"


def test_long_pairs_are_reported(tokenizer):
    sources = ["a", "", "long " * 30, "b", "c", "long " * 40]
    targets = ["1", "2", "3", "4", "long " * 50, "long " * 40]
    corpus = ParallelCorpus(sources, targets)
    message = "3 of 5 pairs are longer than 16 tokens and are left out: lines 3, 5, 6."
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        dataset = batches(corpus, tokenizer, max_tokens=16, shuffle=False)
    assert caught[0].filename == __file__
    assert dataset.report == {"empty": [2], "too long": [3, 5, 6]}
    assert corpus.report == {"empty": [2]}
    assert all_pairs(epoch(dataset)) == encoded(corpus, tokenizer, 16)


def test_max_tokens_includes_the_end(tokenizer):
    (ids,) = tokenizer.encode(["one line of words"])
    corpus = ParallelCorpus(["one line of words"], ["a"])
    for widths in (None, (len(ids),), (len(ids) + 1,)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            batches(corpus, tokenizer, max_tokens=len(ids), widths=widths)
    with pytest.warns(UserWarning, match="1 of 1"), pytest.raises(ValueError):
        batches(corpus, tokenizer, max_tokens=len(ids) - 1, widths=(99,))
