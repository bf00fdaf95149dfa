"""What a token cache was made of: when it may be used again, and whether it is whole.

The file that says so is written last, in one step: without it there is no cache.
"""

import hashlib
import json
import os
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla.data.cache.parts import ROW
from keras_vanilla.data.shards import digests

VERSION = 1
NAME = "cache.json"
NAMES = {
    "version": "the format",
    "lines_of_a_part": "the format",
    "max_tokens": "`max_tokens`",
    "tokenizer": "the tokenizer",
}


def read(folder: Path) -> dict:
    """The manifest of a whole cache.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is of another version, or a file of it is missing or cut.
    """
    made = found(folder)
    if made is None:
        raise FileNotFoundError(
            f"{folder} holds no token cache that is whole: TokenCache.make makes one."
        )
    if made["settings"]["version"] != VERSION:
        raise ValueError(
            f"{folder} must be a token cache of version {VERSION}. Received: version "
            f"{made['settings']['version']}"
        )
    if damage := _damage(folder, made):
        raise ValueError(f"{damage}; TokenCache.make makes the cache again.")
    return made


def found(folder: Path) -> dict | None:
    """The manifest that is in a folder, or None.

    Raises:
        ValueError: if it cannot be read.
    """
    try:
        made = json.loads((folder / NAME).read_bytes())
        return made if made["settings"]["version"] else None
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{folder / NAME} is no manifest of a token cache: delete it."
        ) from None


def write(folder: Path, made: dict):
    """Makes the cache valid, and removes what belongs to none or to the one before."""
    with atomic_write(folder / NAME) as file:
        file.write(json.dumps(made).encode())
    kept = {part["file"] for part in made["parts"]} | {made["index"]}
    for path in folder.glob("cache-*"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def shards(made: dict) -> list[tuple[str, str]]:
    """The files that a cache was made of."""
    paths = [file["path"] for file in made["files"]]
    return list(zip(paths[::2], paths[1::2], strict=True))


def files_now(pairs_of_files, before: dict | None) -> list[dict]:
    """Path, size, time of change and SHA-256 of each file, source and target in turn.

    A file that has the path, size and time that it had before is not read.
    """
    files = [_state(path) for pair in pairs_of_files for path in pair]
    known = {
        _stamp(file): file["sha256"] for file in (before or {"files": []})["files"]
    }
    unknown = [file for file in files if _stamp(file) not in known]
    for file, digest in zip(unknown, digests(f["path"] for f in unknown), strict=True):
        known[_stamp(file)] = digest
    return [file | {"sha256": known[_stamp(file)]} for file in files]


def digest(settings: dict, files: list[dict]) -> str:
    """SHA-256 of the settings and of the text, wherever that lies."""
    decisive = [settings, [file["sha256"] for file in files]]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


def why_not(before, settings, files, folder) -> str | None:
    """Why the cache that is there cannot be used, or None if it can."""
    if before is None:
        return "there is none"
    for name, value in settings.items():
        if before["settings"].get(name) != value:
            return f"{NAMES[name]} has changed"
    if len(before["files"]) != len(files):
        return f"it was made of {len(before['files'])} files, not of {len(files)}"
    for old, new in zip(before["files"], files, strict=True):
        if old["sha256"] != new["sha256"]:
            return f"{new['path']} has changed"
    return _damage(folder, before)


def refuse_changed(files: list[dict]):
    """Refuses files that are not as they were when they were first looked at."""
    for file in files:
        if _stamp(_state(file["path"])) != _stamp(file):
            raise ValueError(f"{file['path']} has changed while it was read.")


def _damage(folder, made):
    expected = {part["file"]: part["bytes"] for part in made["parts"]}
    expected[made["index"]] = made["pairs"] * ROW.itemsize
    for name, size in expected.items():
        path = folder / name
        if not path.exists():
            return f"{path} is missing"
        if path.stat().st_size != size:
            return f"{path} has {path.stat().st_size} bytes, not {size}"
    return None


def _state(path):
    found = os.stat(path)
    return {
        "path": os.path.abspath(path),
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
    }


def _stamp(file):
    return file["path"], file["size"], file["mtime_ns"]
