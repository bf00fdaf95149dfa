"""The parts of a token cache, each made whole or not at all."""

import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla.data.cache import records, tfrecord
from keras_vanilla.data.id_store import flat_ids
from keras_vanilla.data.shards import Part

LINES_AT_ONCE = 4096
# Where a pair lies, how long its two sides are, and its line of the corpus.
ROW = np.dtype(
    [
        ("offset", "<u8"),
        ("part", "<u4"),
        ("size", "<u4"),
        ("lengths", "<u4", 2),
        ("line", "<u8"),
    ]
)


@dataclass(frozen=True)
class Job:
    """A part to make.

    Args:
        part: Part of the text.
        number: int. Its place among the parts.
        stem: str. Path of its files, without their suffixes.
    """

    part: Part
    number: int
    stem: str


class PartMaker:
    """Makes parts: a TFRecord file, the index of its pairs, and what became of all.

    Args:
        models: bytes of the tokenizer's source model and target model.
        special_ids: ints, its `pad_id` and the like.
        max_tokens: int. Longer pairs are left out.
    """

    def __init__(self, models, special_ids, max_tokens):
        from keras_vanilla.tokenizer import Tokenizer

        self._tokenizer = Tokenizer(*models, *special_ids)
        self._max_tokens = max_tokens

    def make(self, job: Job, told) -> dict:
        """Writes a part, and says by `told` how many more lines are done.

        Returns:
            Dict of its `pairs`, `bytes`, `longest` sequence and lines `left_out`.
        """
        result = {"pairs": 0, "bytes": 0, "longest": 0, "left_out": {}}
        pairs = job.part.pairs()
        with (
            atomic_write(f"{job.stem}.tfrecord") as file,
            atomic_write(f"{job.stem}.index") as at,
        ):
            while chunk := list(itertools.islice(pairs, LINES_AT_ONCE)):
                content, rows = self._records(chunk, result["left_out"])
                rows["offset"] += result["bytes"]
                rows["part"] = job.number
                file.write(content)
                at.write(rows.tobytes())
                result["pairs"] += len(rows)
                result["bytes"] += len(content)
                longest = int(rows["lengths"].max(initial=0))
                result["longest"] = max(result["longest"], longest)
                told(len(chunk))
        with atomic_write(
            f"{job.stem}.json"
        ) as file:  # last: with it the part is there
            file.write(json.dumps(result).encode())
        return result

    def _records(self, chunk, left_out):
        """Records of lines as they lie in a file, and the index's rows of them."""
        chunk = [(number, s.decode(), t.decode()) for number, s, t in chunk]
        full = [bool(s.strip() and t.strip()) for _, s, t in chunk]
        chunk = _kept(chunk, full, left_out, "empty")
        sources = self._tokenizer.encode([source for _, source, _ in chunk])
        targets = self._tokenizer.encode_target([target for *_, target in chunk])
        numbers = [number for number, *_ in chunk]
        pairs = list(zip(numbers, sources, targets, strict=True))
        short = [max(len(s), len(t)) <= self._max_tokens for _, s, t in pairs]
        pairs = _kept(pairs, short, left_out, "too long")
        rows = np.zeros(len(pairs), dtype=ROW)
        if not pairs:
            return b"", rows
        numbers, sources, targets = zip(*pairs, strict=True)
        sources = flat_ids(sources, self._tokenizer.vocabulary_size)
        targets = flat_ids(targets, self._tokenizer.target_vocabulary_size)
        content, rows["size"] = tfrecord.framed(
            records.packed(numbers, sources, targets)
        )
        rows["offset"] = np.cumsum(rows["size"], dtype=np.uint64) - rows["size"]
        rows["lengths"] = np.stack([sources[1], targets[1]], axis=1)
        rows["line"] = numbers
        return content, rows


def made_before(job: Job) -> dict | None:
    """What a part is, if it has been made and is still as long."""
    try:
        result = json.loads(Path(f"{job.stem}.json").read_bytes())
        sizes = [os.path.getsize(f"{job.stem}.{x}") for x in ("tfrecord", "index")]
    except (OSError, ValueError):
        return None
    expected = [result["bytes"], result["pairs"] * ROW.itemsize]
    return result if sizes == expected else None


def _kept(rows, keep, left_out, reason):
    """The rows to keep; the line numbers of the others are noted under a reason."""
    others = [row[0] for row, kept in zip(rows, keep, strict=True) if not kept]
    if others:
        left_out.setdefault(reason, []).extend(others)
    return list(itertools.compress(rows, keep))
