import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data.id_store import FlatIds, IdShard, IdStore

ROWS = st.lists(
    st.tuples(*[st.lists(st.integers(0, 96), min_size=1, max_size=7)] * 2), max_size=17
)


def shard_of(pairs, lines_before):
    sides = list(zip(*pairs, strict=True)) or [(), ()]
    numbers = np.arange(1, len(pairs) + 1)
    return IdShard(*(FlatIds.of(side, 97) for side in sides), numbers, lines_before)


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=5), st.data())
def test_pairs_are_read_in_any_order_over_all_shards(shards, data):
    pairs = [pair for shard in shards for pair in shard]
    before = np.cumsum([0, *map(len, shards)]).tolist()
    store = IdStore(map(shard_of, shards, before), longest=7)
    assert len(store) == len(pairs)
    if not pairs:
        return
    numbers = st.lists(st.integers(0, len(pairs) - 1), max_size=23)
    chosen = np.array(data.draw(numbers), dtype=np.int64)
    picked = [pairs[number] for number in chosen]
    assert store.lengths(chosen).tolist() == [[len(s), len(t)] for s, t in picked]
    for side, flat in enumerate(store.read(chosen)):
        assert flat.dtype == np.int32
        assert flat.tolist() == [id_ for pair in picked for id_ in pair[side]]
    assert store.line_numbers(chosen).tolist() == (chosen + 1).tolist()
    lengths = np.concatenate([lengths for _, lengths in store.chunks()])
    np.testing.assert_array_equal(lengths, store.lengths(np.arange(len(pairs))))


@pytest.mark.parametrize("size, dtype", [(1 << 16, "uint16"), (65_537, "int32")])
def test_ids_take_two_bytes_where_the_vocabulary_fits(size, dtype):
    flat = FlatIds.of([[size - 1, 0]], size)
    assert flat.ids.dtype == dtype and flat.ids.tolist() == [size - 1, 0]
