from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data import id_store
from keras_vanilla.data.id_store import IdStore, flat_ids

PAIRS = st.lists(
    st.tuples(*[st.lists(st.integers(0, 96), min_size=1, max_size=7)] * 2),
    min_size=1,
    max_size=29,
)


def tokenizer_of(size, target_size=None):
    return SimpleNamespace(
        vocabulary_size=size, target_vocabulary_size=target_size or size
    )


def store_of(pairs, size=97):
    """The store of some pairs of ids, whose lines are numbered from 1."""
    ids, lengths = flat_ids(*zip(*pairs, strict=True), tokenizer_of(size))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return IdStore(ids, offsets, int(lengths.max()))


@settings(deadline=None)
@given(PAIRS, st.data())
def test_pairs_are_read_in_any_order(pairs, data):
    store = store_of(pairs)
    assert len(store) == len(pairs)
    numbers = st.lists(st.integers(0, len(pairs) - 1), max_size=23)
    chosen = np.array(data.draw(numbers), dtype=np.int64)
    picked = [pairs[number] for number in chosen]
    lengths = [[len(s), len(t)] for s, t in picked]
    np.testing.assert_array_equal(
        store.lengths(chosen), np.reshape(lengths, (len(chosen), 2))
    )
    for side, flat in enumerate(store.read(chosen)):
        assert flat.dtype == np.int32
        assert flat.tolist() == [id_ for pair in picked for id_ in pair[side]]
    assert store.line_numbers(chosen).tolist() == (chosen + 1).tolist()


def test_chunks_have_the_lengths_of_all_pairs(monkeypatch):
    monkeypatch.setattr(id_store, "PAIRS_AT_ONCE", 5)
    pairs = [([7] * (1 + n % 3), [5] * (1 + n % 4)) for n in range(13)]
    chunks = list(store_of(pairs).chunks())
    assert [first for first, _ in chunks] == [0, 5, 10]
    lengths = np.concatenate([lengths for _, lengths in chunks])
    assert lengths.tolist() == [[len(s), len(t)] for s, t in pairs]


@pytest.mark.parametrize(
    "sizes, dtype",
    [((1 << 16, 97), "uint16"), ((65_537, 97), "int32"), ((97, 65_537), "int32")],
)
def test_ids_take_two_bytes_where_both_vocabularies_fit(sizes, dtype):
    rows = [[[size - 1, 0]] for size in sizes]
    ids, lengths = flat_ids(*rows, tokenizer_of(*sizes))
    assert ids.dtype == dtype and lengths.tolist() == [2, 2]
    assert ids.tolist() == [sizes[0] - 1, 0, sizes[1] - 1, 0]
