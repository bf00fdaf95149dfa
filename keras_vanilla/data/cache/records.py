"""Pairs of ids as tf.train.Example messages.

    source_ids, target_ids: int64 lists, each with its end; line: int64, from 1

Lists, not raw bytes: anybody's `tf.io.parse_single_example` reads them, and an id below
16,384 takes two bytes. Written without TensorFlow, whose messages take Python three
times as long to fill.
"""

import functools
import itertools

import numpy as np


def packed(lines, sources, targets) -> list[bytes]:
    """A message for each pair.

    Args:
        lines: list of int, the line number of each.
        sources: (flat ids, length of each pair's).
        targets: likewise.
    """
    sides = _varints_of_rows(*sources), _varints_of_rows(*targets)
    return [
        _field(
            _feature(b"source_ids", source)
            + _feature(b"target_ids", target)
            + _feature(b"line", _varint(line))
        )
        for line, source, target in zip(lines, *sides, strict=True)
    ]


def unpacked(records) -> list[tuple[int, list[int], list[int]]]:
    """(Line, source ids, target ids) of each message."""
    import tensorflow as tf

    parse, found = tf.train.Example.FromString, []
    for record in records:
        features = parse(record).features.feature
        source, target, line = (
            features[name].int64_list.value
            for name in ("source_ids", "target_ids", "line")
        )
        found.append((line[0], list(source), list(target)))
    return found


def _feature(name, values):
    """An entry of the map of features: its name (1), and a list of int64 (2, 3, 1)."""
    value = _field(_field(values), b"\x1a")
    return _field(_field(name) + _field(value, b"\x12"))


def _field(content, tag=b"\n"):
    """A field of bytes: by default number 1 of its message."""
    return tag + _varint(len(content)) + content


@functools.lru_cache(maxsize=1 << 14)
def _varint(number):
    """Seven bits a byte, the lowest first; all bytes but the last have the high bit."""
    content = bytearray()
    while number > 127:
        content.append(number & 127 | 128)
        number >>= 7
    content.append(number)
    return bytes(content)


def _varints_of_rows(flat, lengths):
    """The varints of each row's ids, joined."""
    values = np.asarray(flat, dtype=np.int64)
    sizes = np.ones(len(values), dtype=np.int64)
    for bits in range(7, 63, 7):
        sizes += values >> bits > 0
    content = np.empty(sizes.sum(), dtype=np.uint8)
    starts = np.cumsum(sizes) - sizes
    for byte in range(int(sizes.max(initial=0))):
        has = sizes > byte
        more = np.where(sizes[has] > byte + 1, 128, 0)
        content[starts[has] + byte] = values[has] >> (7 * byte) & 127 | more
    ends = np.concatenate([starts, [len(content)]])[np.cumsum([0, *lengths])].tolist()
    joined = content.tobytes()
    return [joined[start:stop] for start, stop in itertools.pairwise(ends)]
