"""Translates files of lines to files with the same names."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_vanilla._atomic_write import atomic_write, atomic_write_text
from keras_vanilla._checks import check_choice, json_of_form
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla._progress import Progress
from keras_vanilla._types import PathLike
from keras_vanilla.bulk.ray_workers import with_ray
from keras_vanilla.bulk.shard import JOURNAL, Journal, Shard, ShardTranslator, identity
from keras_vanilla.data.lines import raw_lines
from keras_vanilla.interop.hub import pinned
from keras_vanilla.pretrained import model_not_found

STATE = ".translating"  # subfolder of the output folder with the state for later runs
PROBLEMS = "problems.tsv"
RECORD = "run.json"
SECONDS_BETWEEN_LOOKS = 2.0


def translate_shards(
    model: PathLike,
    sources: Sequence[PathLike],
    folder: PathLike,
    *,
    engine: str = "local",
    workers: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> tuple[int, int]:
    """Translates files of lines to files with the same names, line by line.

    To resume an interrupted run, call this function again. Lines that cannot be
    translated are empty in the output; `problems.tsv` in the folder lists the file,
    number and problem of each.

    Args:
        model: path, as in `open_line_translator`.
        sources: paths of text in UTF-8; .gz, .xz and .zst files are decompressed, and
            their translations compressed in the same way.
        folder: path of the output folder.
        engine: "local", one file after the other in this process, or "ray".
        workers: int or None. Number of Ray workers, each with a copy of the model; None
            means one per machine.
        progress: Progress that counts the lines, or None.
        **settings: `threads`, `beam_size`, `length_penalty`, `max_length`, as in
            `open_line_translator`.
    Returns:
        The number of lines, and the number of lines with a problem.
    Raises:
        FolderInUse: if another run writes into the folder.
        FileExistsError: if an output file exists that this translation did not write.
        FileNotFoundError: if a source or the model does not exist.
        ValueError: if two sources have the same name, a source has changed since it was
            translated, or the folder belongs to another model or search.
    """
    check_choice("engine", engine, ENGINES)
    model, folder = _absolute(model), Path(folder).absolute()
    shards = _planned(sources, folder)
    with folder_lock(folder / STATE):
        _check_record(model, settings, folder / STATE / RECORD)
        remaining = [shard for shard in shards if not _is_done(shard)]
        since = _lines(remaining)
        for _ in ENGINES[engine](remaining, model, workers, **settings):
            _show(progress, remaining, since)
        _show(progress, remaining, since)
        return _totals(shards, folder / PROBLEMS)


def _absolute(model):
    """Returns the model with existing absolute paths, or the commit of a hub model."""
    if is_hub_reference(model):
        return pinned(str(model))
    if not Path(model).exists():
        raise model_not_found(model)
    return Path(model).absolute()


def _planned(sources, folder):
    """Returns the shards in the order of their names."""
    shards = {}
    for source in map(Path, sources):
        shard = Shard(
            source.absolute(), folder / source.name, folder / STATE / source.name
        )
        if (other := shards.setdefault(source.name, shard)).source != shard.source:
            raise ValueError(
                "Each file must have a name of its own, which its translation gets. "
                f"Received: {other.source} and {shard.source}"
            )
        if not source.is_file():
            raise FileNotFoundError(f"There is no file {source}.")
        if shard.target.exists() and not shard.folder.exists():
            raise FileExistsError(
                f"{shard.target} exists already and is not of this translation; "
                "nothing was written."
            )
    return [shards[name] for name in sorted(shards)]


def _check_record(model, settings, path):
    """Refuses a folder that was started with another model or search."""
    search = {name: value for name, value in settings.items() if name != "threads"}
    record = {"model": _digest(model), "search": search}
    has_begun = any(path.parent.glob(f"*/{JOURNAL}"))
    if not has_begun or not path.exists():  # also after an error at the first line
        atomic_write_text(path, json.dumps(record, indent=2))
        return
    begun = json_of_form(path.read_bytes(), {})
    if begun is None or record.keys() - begun:
        raise ValueError(f"{path} is damaged; use another folder.")
    for name, value in record.items():
        if begun[name] != value:
            raise ValueError(
                f"{path.parent.parent} was begun with another {name}: {begun[name]}. "
                f"Received: {value}; use another folder"
            )


def _digest(model):
    """Returns a value that identifies a model.

    It is the SHA-256 of a file or of all files in a folder, a list of these for a list,
    a command itself, or the commit of a model on the hub.
    """
    if isinstance(model, str):
        return model
    if not isinstance(model, Path):
        return [_digest(path) for path in model]
    digest = hashlib.sha256()
    paths = sorted(model.rglob("*")) if model.is_dir() else [model]
    for path in paths:
        if path.is_file():
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _is_done(shard):
    """Whether a shard is translated; refuses a source that has changed since then."""
    journal = Journal.read(shard.folder)
    if not (journal.finished and shard.target.exists()):
        return False
    if journal.source == identity(shard.source):
        return True
    # The source may be a copy, which has another modification time.
    digest, lines = hashlib.sha256(), 0
    for line in raw_lines(shard.source):
        digest.update(line + b"\n")
        lines += 1
    if lines != journal.lines or (lines and digest.hexdigest() != journal.digest):
        raise ValueError(
            f"{shard.source} has changed since it was translated. Remove "
            f"{shard.target} to translate it again."
        )
    return True


def _local(shards, model, workers, **settings) -> Iterator[None]:
    """Translates shards one after the other in this process."""
    if workers is not None:
        raise ValueError(f"`workers` is for the engine 'ray'. Received: {workers}")
    if not shards:
        return
    translator, looked = ShardTranslator(model, **settings), time.monotonic()
    for shard in shards:
        for _ in translator.translate(shard):
            if time.monotonic() - looked > SECONDS_BETWEEN_LOOKS:
                looked = time.monotonic()
                yield


ENGINES = {"local": _local, "ray": with_ray}


def _lines(shards):
    return sum(Journal.read(shard.folder).lines for shard in shards)


def _show(progress, shards, since):
    if progress is not None:
        progress.update(_lines(shards) - since - progress.count)


def _totals(shards, path):
    """Returns the numbers of lines and problems; writes the list of problems."""
    journals = [Journal.read(shard.folder) for shard in shards]
    problems = sum(journal.problems for journal in journals)
    path.unlink(missing_ok=True)
    if problems:
        with atomic_write(path) as file:
            for shard, journal in zip(shards, journals, strict=True):
                if journal.problems:
                    for line in shard.problems.read_text("utf-8").splitlines():
                        file.write(f"{shard.source.name}\t{line}\n".encode())
    return sum(journal.lines for journal in journals), problems
