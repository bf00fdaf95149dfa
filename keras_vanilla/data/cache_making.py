"""The making of a token cache, shard by shard."""

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from keras_vanilla._progress import Progress
from keras_vanilla.data import cache_manifest as manifests
from keras_vanilla.data.id_file import write_shard
from keras_vanilla.data.id_store import FlatIds, IdShard
from keras_vanilla.data.lines import lines_of
from keras_vanilla.data.shards import names_of
from keras_vanilla.tokenizer import TokenizerProtocol

LINES_AT_ONCE = 4_096
LINES_PER_SHARD = 500_000  # their ids are in memory while the shard is made


@dataclass(frozen=True)
class ShardText:
    """The lines of text that one shard is made of.

    Args:
        key: str. SHA-256 of everything that decides the shard's ids.
        lines: int. Number of lines.
        source: path of the source file, of which this is a range of lines.
        target: path of its translation.
    """

    key: str
    lines: int
    source: str
    target: str


def make_cache(
    folder: Path,
    paths: list[tuple[str, str]],
    files: list[dict],
    tokenizer: TokenizerProtocol,
    max_tokens: int,
    before: dict | None,
    stream: TextIO | None,
) -> None:
    """Makes the shards that are not there yet, then the manifest; needs the lock.

    Args:
        folder: path of the cache.
        paths: path of each source file and its translation.
        files: their `text_files`, source and target in turn.
        tokenizer: TokenizerProtocol.
        max_tokens: int. Longer pairs are left out.
        before: dict or None. The manifest of the cache that is in the folder.
        stream: text file to show the progress on, or None.
    """
    manifests.remove_half_written(folder)
    texts = _shard_texts(paths, files, tokenizer, max_tokens)
    journal = manifests.read_journal(folder)
    before_shards = before["shards"] if before else []
    known = {shard["key"]: shard for shard in [*before_shards, *journal["shards"]]}
    shards = {
        text.key: known[text.key]
        for text in texts
        if text.key in known and manifests.damage(folder, known[text.key]) is None
    }
    missing = sum(text.lines for text in texts if text.key not in shards)
    progress = Progress("Tokenising", missing, "lines", stream) if stream else None
    begun = journal["files"]
    maker = _ShardMaker(tokenizer, max_tokens, progress)
    try:
        for text, pairs in _read(texts):
            if text.key in shards:
                _pass_over(pairs)
                continue
            file = f"ids-{text.key[:12]}-{secrets.token_hex(4)}.bin"
            begun.append(file)
            manifests.write_journal(folder, list(shards.values()), begun)
            shard, left_out = maker.make(pairs)
            manifests.refuse_changed(files)
            shards[text.key] = {
                "key": text.key,
                "file": file,
                "lines": text.lines,
                "pairs": len(shard),
                "longest": _longest(shard),
                **write_shard(folder / file, shard, left_out),
            }
            manifests.write_journal(folder, list(shards.values()), begun)
    finally:
        if progress:
            progress.close()
    kept = [shards[text.key] for text in texts]
    if not any(shard["pairs"] for shard in kept):
        raise ValueError(
            f"{names_of(paths)}: none of {sum(text.lines for text in texts)} pairs has "
            f"text on both sides and at most {max_tokens} tokens."
        )
    manifest = {
        "version": manifests.VERSION,
        "tokenizer": tokenizer.digest,
        "max_tokens": max_tokens,
        "files": files,
        "shards": kept,
        "stale": _stale(kept, before, begun),
    }
    manifests.write_manifest(folder, manifest)
    remaining = manifests.remove_files(folder, manifest["stale"])
    if remaining != manifest["stale"]:
        manifests.write_manifest(folder, manifest | {"stale": remaining})


def _shard_texts(paths, files, tokenizer, max_tokens):
    """The text of every shard, in the order of the corpus."""
    texts = []
    for (source, target), source_file, target_file in zip(
        paths, files[::2], files[1::2], strict=True
    ):
        for first in range(0, source_file["lines"], LINES_PER_SHARD):
            lines = min(LINES_PER_SHARD, source_file["lines"] - first)
            key = manifests.digest_of(
                manifests.VERSION,
                tokenizer.digest,
                max_tokens,
                source_file["sha256"],
                target_file["sha256"],
                first,
                lines,
            )
            texts.append(ShardText(key, lines, source, target))
    return texts


def _read(texts) -> Iterator[tuple[ShardText, Iterator[tuple[int, bytes, bytes]]]]:
    """Each shard's text and its (line number, source, target); all must be read."""
    for (source, target), group in itertools.groupby(
        texts, key=lambda text: (text.source, text.target)
    ):
        pairs = _pairs(source, target)
        for text in group:
            lines = itertools.islice(pairs, text.lines)
            yield text, ((n, s, t) for n, (s, t) in enumerate(lines, start=1))


def _pairs(source, target):
    """The lines of two files, of which as many were counted."""
    for pair in itertools.zip_longest(lines_of(source), lines_of(target)):
        for path, line in zip((source, target), pair, strict=True):
            if line is None:
                raise manifests.changed(path)
        yield pair


def _pass_over(pairs):
    for _ in pairs:
        pass


def _stale(kept, before, begun):
    """Files of ours that no shard uses any more."""
    ours = [*begun]
    if before:
        ours += [shard["file"] for shard in before["shards"]] + before["stale"]
    used = {shard["file"] for shard in kept}
    return sorted(set(ours) - used)


def _longest(shard):
    return int(shard.lengths(np.arange(len(shard))).max(initial=0))


class _ShardMaker:
    """Encodes lines; SentencePiece uses all processor cores for it."""

    def __init__(
        self, tokenizer: TokenizerProtocol, max_tokens: int, progress: Progress | None
    ):
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._progress = progress

    def make(
        self, pairs: Iterator[tuple[int, bytes, bytes]]
    ) -> tuple[IdShard, dict[str, list[int]]]:
        """The shard of some lines, and the line numbers left out by reason."""
        left_out = {"empty": [], "too long": []}
        chunks = [self._encoded([], left_out)]
        while chunk := list(itertools.islice(pairs, LINES_AT_ONCE)):
            chunks.append(self._encoded(chunk, left_out))
            if self._progress:
                self._progress.update(len(chunk))
        sources, targets, numbers = zip(*chunks, strict=True)
        shard = IdShard(
            FlatIds.joined(sources), FlatIds.joined(targets), np.concatenate(numbers)
        )
        return shard, left_out

    def _encoded(self, chunk, left_out):
        numbers = [number for number, _, _ in chunk]
        sources = [source.decode() for _, source, _ in chunk]
        targets = [target.decode() for _, _, target in chunk]
        full = [
            bool(s.strip() and t.strip()) for s, t in zip(sources, targets, strict=True)
        ]
        left_out["empty"] += _others(numbers, full)
        numbers, sources, targets = _kept(full, numbers, sources, targets)
        sources = self._tokenizer.encode(sources)
        targets = self._tokenizer.encode_target(targets)
        longest = map(max, map(len, sources), map(len, targets))
        short = [length <= self._max_tokens for length in longest]
        left_out["too long"] += _others(numbers, short)
        numbers, sources, targets = _kept(short, numbers, sources, targets)
        return (
            FlatIds.of(sources, self._tokenizer.vocabulary_size),
            FlatIds.of(targets, self._tokenizer.target_vocabulary_size),
            np.array(numbers, dtype=np.int64),
        )


def _kept(keep: list[bool], *columns: list):
    """The values of each column that are to be kept."""
    return (list(itertools.compress(column, keep)) for column in columns)


def _others(column: list, keep: list[bool]):
    return [value for value, kept in zip(column, keep, strict=True) if not kept]
