import random

import numpy as np
import pytest
import tensorflow as tf

from keras_vanilla.data.cache import records as pair_records
from keras_vanilla.data.cache import tfrecord
from keras_vanilla.data.id_store import flat_ids


def random_records(sizes):
    draw = random.Random(1)
    return [draw.randbytes(size) for size in sizes]


def by_tensorflow(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path.read_bytes()


@pytest.mark.parametrize(
    "sizes", [[1], [7, 255, 256, 257, 1, 3001, 64], [2**k for k in range(13)]]
)
def test_records_are_framed_as_tensorflow_frames_them(tmp_path, sizes):
    records = random_records(sizes)
    content, lengths = tfrecord.framed(records)
    assert content == by_tensorflow(tmp_path / "x", records)
    assert lengths.tolist() == [size + 16 for size in sizes]


def test_the_sum_is_crc_32c():
    # RFC 3720, section B.4: 32 bytes of zeros, of ones, and rising.
    known = {
        bytes(32): 0x8A9136AA,
        b"\xff" * 32: 0x62A8AB43,
        bytes(range(32)): 0x46DD794E,
    }
    sums = tfrecord.masked_crcs(b"".join(known), [32, 32, 32])
    masked = [((c >> 15 | c << 17) + 0xA282EAD8) % 2**32 for c in known.values()]
    assert sums.tolist() == masked


def test_any_bit_turned_over_is_seen():
    records = random_records([5, 3, 9])
    content, sizes = tfrecord.framed(records)
    ends = np.cumsum(sizes)
    for bit in range(8 * len(content)):
        position = bit // 8
        if position - (ends - sizes)[np.searchsorted(ends, position, "right")] in range(
            8, 12
        ):
            continue  # the sum of the length, which is known without it
        turned = bytearray(content)
        turned[position] ^= 1 << bit % 8
        framed = [bytes(turned[e - s : e]) for e, s in zip(ends, sizes, strict=True)]
        expected = np.searchsorted(ends, position, "right")
        assert np.flatnonzero(tfrecord.damaged(framed)).tolist() == [expected]


def test_a_record_cut_short_is_damaged():
    content, _ = tfrecord.framed(random_records([8]))
    for end in range(len(content)):
        assert tfrecord.damaged([content[:end]]).all()
    assert not tfrecord.damaged([content]).any()


def test_messages_are_what_tensorflow_parses(tmp_path):
    draw = random.Random(2)
    ids = [0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**28]
    sources = [draw.choices(ids, k=size) for size in (1, 3, 60, 200)]
    targets = [draw.choices(ids, k=size) for size in (70, 2, 1, 130)]
    lines = [1, 2**20, 2**33, 5]
    records = pair_records.packed(
        lines, flat_ids(sources, 2**30), flat_ids(targets, 2**30)
    )
    feature = tf.io.RaggedFeature(tf.int64)
    features = {"source_ids": feature, "target_ids": feature, "line": feature}
    parsed = tf.io.parse_example(records, features)
    assert parsed["source_ids"].to_list() == sources
    assert parsed["target_ids"].to_list() == targets
    assert parsed["line"].to_list() == [[line] for line in lines]
    expected = list(zip(lines, sources, targets, strict=True))
    assert pair_records.unpacked(records) == expected
