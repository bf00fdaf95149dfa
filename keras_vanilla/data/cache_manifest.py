"""What a token cache was made of, which files are its own, and whether it is whole.

`token_cache.json` is written last, in one step: without it there is no cache. While a
cache is made, `making.json` lists each file before it is written, so that a later
making knows which files are the cache's own. No other file is ever deleted, but for
what `atomic_write` leaves of these two when its process is killed.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla._checks import has_form, json_of_form
from keras_vanilla.data.id_file import ARRAYS, sha256_of
from keras_vanilla.data.lines import count_lines, refuse_pipe

VERSION = 2
NAME = "token_cache.json"
JOURNAL = "making.json"
FILE = {"path": str, "size": int, "mtime_ns": int, "sha256": str, "lines": int}
SHARD = {
    "key": str,
    "file": str,
    "lines": int,
    "pairs": int,
    "longest": int,
    "bytes": int,
    "sha256": str,
    "arrays": dict.fromkeys(ARRAYS, (int, int, str)),
}
MANIFEST = {
    "tokenizer": str,
    "max_tokens": int,
    "files": [FILE],
    "shards": [SHARD],
    "stale": [str],
}
HALF_WRITTEN = re.compile(r"\.(token_cache|making)\.[0-9a-f]{12}\.json")


def read_manifest(folder: Path) -> dict | None:
    """The manifest of the cache in a folder, or None if there is no cache.

    Raises:
        ValueError: if it cannot be read, or is of another version.
    """
    try:
        content = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return None
    manifest = json_of_form(content, {"version": int})
    if manifest is not None and manifest["version"] != VERSION:
        raise ValueError(
            f"{folder} must be a token cache of version {VERSION}. Received: version "
            f"{manifest['version']}"
        )
    if (
        not has_form(manifest, MANIFEST)
        or not manifest["shards"]
        or not manifest["files"]
        or len(manifest["files"]) % 2
    ):
        raise ValueError(
            f"{folder / NAME} is not the manifest of a token cache: delete it."
        )
    return manifest


def write_manifest(folder: Path, manifest: dict) -> None:
    """Makes the cache valid."""
    atomic_write_text(folder / NAME, json.dumps(manifest))


def read_journal(folder: Path) -> dict:
    """The shards that an interrupted making finished, and the files it began."""
    nothing = {"shards": [], "files": []}
    try:
        content = (folder / JOURNAL).read_bytes()
    except OSError:
        return nothing
    return json_of_form(content, {"shards": [SHARD], "files": [str]}) or nothing


def write_journal(folder: Path, shards: list[dict], files: list[str]) -> None:
    """Notes the finished shards, and every file that was begun."""
    atomic_write_text(folder / JOURNAL, json.dumps({"shards": shards, "files": files}))


def remove_files(folder: Path, names: Iterable[str]) -> list[str]:
    """Removes files of a cache, and the journal.

    Returns:
        Names of the files that could not be removed: on Windows, those a reader uses.
    """
    remaining = []
    for name in names:
        try:
            _own_path(folder, name).unlink(missing_ok=True)
        except OSError:
            remaining.append(name)
    with contextlib.suppress(OSError):
        (folder / JOURNAL).unlink(missing_ok=True)
    return remaining


def remove_half_written(folder: Path) -> None:
    """Removes manifests and journals that killed makings did not write to the end."""
    for path in folder.iterdir():
        if HALF_WRITTEN.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def damage(folder: Path, shard: dict, checksum: bool = True) -> str | None:
    """What is wrong with the file of a shard, or None.

    Args:
        folder: path of the cache.
        shard: dict, the shard's entry in the manifest.
        checksum: bool. Whether to read the whole file and compare its SHA-256.
    """
    path = _own_path(folder, shard["file"])
    if not path.exists():
        return f"{path} is missing"
    if (size := path.stat().st_size) != shard["bytes"]:
        return f"{path} has {size} bytes, not {shard['bytes']}"
    if checksum and sha256_of(path) != shard["sha256"]:
        return f"{path} is damaged: its SHA-256 has changed"
    return None


def first_damage(folder: Path, shards: list[dict], checksum: bool = True) -> str | None:
    """What is wrong with the first damaged shard, or None if all are whole."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        each = threads.map(lambda shard: damage(folder, shard, checksum), shards)
        return next((text for text in each if text), None)


def text_files(paths: Iterable[str], known: Iterable[dict]) -> list[dict]:
    """Path, size, time of change, SHA-256 and number of lines of each text file.

    A file that has the path, size and time of one of the `known` files is taken to be
    unchanged and is not read.

    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: if a path is a pipe, or a compressed file is damaged.
        ImportError: if a path ends in ".zst" and Python cannot read that.
    """
    files = [_state(path) for path in paths]
    known = {_stamp(file): file for file in known}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(
            threads.map(lambda file: known.get(_stamp(file)) or _contents(file), files)
        )


def refuse_changed(files: Iterable[dict]) -> None:
    """Refuses text files that have changed since `text_files` read them."""
    for file in files:
        if _stamp(_state(file["path"])) != _stamp(file):
            raise changed(file["path"])


def changed(path: str) -> ValueError:
    """The error for a text file that is not what `text_files` read."""
    return ValueError(f"{path} has changed while it was read.")


def digest_of(*values) -> str:
    """SHA-256 of values that JSON can write."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _own_path(folder, name):
    if Path(name).name != name:
        raise ValueError(f"{folder / NAME} names a file outside its folder: {name!r}")
    return folder / name


def _contents(file):
    digest = sha256_of(Path(file["path"]))
    return file | {"sha256": digest, "lines": count_lines(file["path"])}


def _state(path):
    refuse_pipe(path)
    status = os.stat(path)
    return {
        "path": os.path.abspath(path),
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
    }


def _stamp(file):
    return file["path"], file["size"], file["mtime_ns"]
