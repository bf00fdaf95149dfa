"""TFRecord framing with NumPy, many records at a time.

    length (8 bytes)  masked_crc(length)  data  masked_crc(data)

A process that only makes a cache so needs no TensorFlow, and one that reads it at
random places, which TensorFlow's reader cannot, still checks every record.
"""

import functools

import numpy as np

POLYNOMIAL = 0x82F63B78  # CRC-32C, bits reversed
MASK_DELTA = 0xA282EAD8
HEADER, FOOTER = 12, 4  # bytes around the data


def framed(records: list[bytes]) -> tuple[bytes, np.ndarray]:
    """Records as they lie in a file, and the size of each there."""
    lengths = np.fromiter(map(len, records), "<u8", len(records))
    heads = lengths.tobytes()
    head_sums = masked_crcs(heads, np.full(len(records), 8)).astype("<u4").tobytes()
    sums = masked_crcs(b"".join(records), lengths).astype("<u4").tobytes()
    pieces = []
    for i, record in enumerate(records):
        pieces += heads[8 * i : 8 * i + 8], head_sums[4 * i : 4 * i + 4]
        pieces += record, sums[4 * i : 4 * i + 4]
    return b"".join(pieces), lengths.astype(np.int64) + HEADER + FOOTER


def damaged(records: list[bytes]) -> np.ndarray:
    """Which of some records, each with its frame, are not as they were written."""
    short = np.array([len(record) <= HEADER + FOOTER for record in records])
    if short.any():
        return short
    data = [record[HEADER:-FOOTER] for record in records]
    lengths = np.fromiter(map(len, data), np.int64, len(data))
    heads = np.frombuffer(b"".join(record[:8] for record in records), "<u8")
    sums = np.frombuffer(b"".join(record[-FOOTER:] for record in records), "<u4")
    return (heads != lengths) | (masked_crcs(b"".join(data), lengths) != sums)


def masked_crcs(data: bytes, lengths) -> np.ndarray:
    """The masked CRC-32C of each of the records that lie one after the other.

    A CRC is linear: the sum is the exclusive or of what each byte does to it alone,
    which depends on the byte and on how many follow it in its record.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    following = np.repeat(ends, lengths) - np.arange(1, len(data) + 1)
    table, of_nothing = _effects(1 << int(lengths.max()).bit_length())
    values = np.frombuffer(data, np.uint8)
    effects = table[following, 0, values & 15] ^ table[following, 1, values >> 4]
    sums = np.bitwise_xor.reduceat(effects, ends - lengths)
    sums = ~(sums ^ of_nothing[lengths])
    return ((sums >> 15) | (sums << 17)) + np.uint32(MASK_DELTA)


@functools.cache
def _effects(size):
    """What a half byte does to the sum of a record (size, 2, 16), by the bytes after.

    And the sum that a record of so many zero bytes would have, before it is inverted.
    """
    table = np.empty((size, 2, 16), dtype=np.uint32)
    of_zeros = np.empty(size, dtype=np.uint32)
    by_byte = _crc_table()
    row = np.concatenate([by_byte[:16], by_byte[::16]])
    state = np.array(0xFFFFFFFF, dtype=np.uint32)
    for following in range(size):
        table[following], of_zeros[following] = row.reshape(2, 16), state
        row = (row >> 8) ^ by_byte[row & 255]
        state = (state >> 8) ^ by_byte[state & 255]
    return table, of_zeros


def _crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return table
