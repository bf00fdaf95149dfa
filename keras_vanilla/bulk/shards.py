"""Translates files of lines to files with the same names."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_vanilla._atomic_write import atomic_write, remove_unfinished
from keras_vanilla._checks import check_choice
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla._progress import Progress
from keras_vanilla._record import read_record, write_record
from keras_vanilla._types import PathLike
from keras_vanilla.bulk.ray_workers import with_ray
from keras_vanilla.bulk.shard import Shard, ShardTranslator, digest_of, is_done
from keras_vanilla.interop.hub import pinned
from keras_vanilla.pretrained import model_not_found

STATE = ".translating"  # subfolder of the output folder with the state for later runs
PROBLEMS = "problems.tsv"
RUN = "run.json"
OWN_NAMES = {PROBLEMS, STATE, RUN, LOCK}


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

    To resume an interrupted run, call this function again: files that are complete are
    kept, others begin anew. Lines that cannot be translated are empty in the output;
    `problems.tsv` in the folder lists the file, number and problem of each.

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
        ValueError: if two sources have the same name or one has a name that is needed
            here, such as problems.tsv, a source or its translation has changed since it
            was translated, or the folder belongs to another model or search.
    """
    check_choice("engine", engine, tuple(ENGINES))
    folder = Path(folder).absolute()
    state = folder / STATE
    if is_hub_reference(model):
        model = pinned(str(model))
    elif Path(model).exists():
        model = Path(model).absolute()
    else:
        raise model_not_found(model)
    shards = _planned(sources, folder)
    with folder_lock(state):
        remove_unfinished(state, re.compile(".*"))
        remove_unfinished(folder, re.compile(re.escape(PROBLEMS)))
        _check_run(model, settings, state)
        remaining = [shard for shard in shards if not is_done(shard)]
        for count in ENGINES[engine](remaining, model, workers, **settings):
            if progress is not None:
                progress.update(count)
        return _totals(shards, folder / PROBLEMS)


def _planned(sources, folder):
    """Returns the shards in the order of their names."""
    shards = {}
    for source in map(Path, sources):
        if source.name in OWN_NAMES:
            raise ValueError(
                f"{source.name} is a file of the translation itself. Received: the "
                f"source {source}"
            )
        state = folder / STATE / source.name
        shard = Shard(source.absolute(), folder / source.name, state)
        if (other := shards.setdefault(source.name, shard)).source != shard.source:
            raise ValueError(
                "Each file must have a name of its own, which its translation gets. "
                f"Received: {other.source} and {shard.source}"
            )
        if not source.is_file():
            raise FileNotFoundError(f"There is no file {source}.")
        if not shard.record.exists():
            is_done(shard)  # refuses a target of something else
    return [shards[name] for name in sorted(shards)]


def _check_run(model, settings, state):
    """Refuses a folder with translations of another model or search."""
    search = {name: value for name, value in settings.items() if name != "threads"}
    identity = model if isinstance(model, str) else digest_of(model)
    run = {"model": identity, "search": search}
    path = state / RUN
    if not any(state.glob("*/record.json")):  # also after an error at the first line
        write_record(path, run)
        return
    begun = read_record(path)
    for name, value in run.items():
        if begun[name] != value:
            raise ValueError(
                f"{state.parent} was begun with another {name}: {begun[name]}. "
                f"Received: {value}; use another folder"
            )


def _local(shards, model, workers, **settings) -> Iterator[int]:
    """Translates shards one after the other in this process."""
    if workers is not None:
        raise ValueError(f"`workers` is for the engine 'ray'. Received: {workers}")
    if shards:
        translator = ShardTranslator(model, **settings)
        for shard in shards:
            yield from translator.translate(shard)


ENGINES = {"local": _local, "ray": with_ray}


def _totals(shards, path):
    """Returns the numbers of lines and problems; writes the list of problems."""
    records = [read_record(shard.record) for shard in shards]
    rows = [
        f"{shard.source.name}\t{number}\t{problem}\n"
        for shard, record in zip(shards, records, strict=True)
        for number, problem in record["problems"]
    ]
    path.unlink(missing_ok=True)
    if rows:
        with atomic_write(path) as file:
            file.write("".join(rows).encode())
    return sum(record["lines"] for record in records), len(rows)
