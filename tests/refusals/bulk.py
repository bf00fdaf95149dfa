"""What bulk translation refuses."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from refusal import Refusal

from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla.bulk import open_line_translator, translate_shards
from keras_vanilla.pretrained import pretrained_file

KERAS = str(pretrained_file("en-fr"))
TFLITE = str(pretrained_file("en-fr", ".tflite"))


def shards(folder, sources=("a.txt",), model=KERAS, **settings):
    """Translates files, which are written first."""
    paths = [Path(folder, name) for name in sources]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("one\n")
    translate_shards(model, paths, Path(folder, "out"), **settings)


def locked(folder):
    with folder_lock(Path(folder, "out", ".translating")):
        shards(folder)


def existing_target(folder):
    Path(folder, "out").mkdir()
    Path(folder, "out", "a.txt").write_text("mine")
    shards(folder)


def damaged_source(folder):
    path = Path(folder, "a.txt.gz")
    path.write_bytes(gzip.compress(b"one\n")[:-6])
    translate_shards(TFLITE, [path], Path(folder, "out"))


def without_ray(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)
        shards(folder, engine="ray")


def other_model(folder):
    """The file is not opened, because the folder belongs to another one."""
    shards(folder, model=TFLITE)
    other = Path(folder, "other.keras")
    other.touch()
    shards(folder, model=other)


def threads_of(threads):
    return lambda: open_line_translator(KERAS, threads=threads)


def folder_of(name):
    def open_folder(folder):
        Path(folder, name).touch()
        open_line_translator(folder)

    return open_folder


def file_of(name):
    def open_file(folder):
        Path(folder, name).write_text(json.dumps({}))
        open_line_translator(Path(folder, name))

    return open_file


ROWS = [
    Refusal("engine", lambda f: shards(f, engine="spark"), "`engine`.*'spark'"),
    Refusal("workers without Ray", lambda f: shards(f, workers=2), "`workers`.*ray.*2"),
    Refusal("no Ray", without_ray, r"\[ray\]", ImportError),
    Refusal(
        "no model",
        lambda f: shards(f, model="nowhere.keras"),
        "nowhere.keras",
        FileNotFoundError,
    ),
    Refusal(
        "no source",
        lambda f: translate_shards(KERAS, [f / "nothing.txt"], f / "out"),
        "nothing.txt",
        FileNotFoundError,
    ),
    Refusal(
        "two files of one name",
        lambda f: shards(f, ["a.txt", "other/a.txt"]),
        "name of its own.*other/a.txt",
    ),
    *(
        Refusal(
            f"file named {name}",
            lambda f, name=name: shards(f, [name]),
            f"{name} is a file of the translation.*/{name}",
        )
        for name in ("problems.tsv", "run.json", ".lock", ".translating")
    ),
    Refusal("file of somebody else", existing_target, "a.txt exists", FileExistsError),
    Refusal(
        "translations beside sources",
        lambda f: translate_shards(KERAS, [KERAS], Path(KERAS).parent),
        "translator.keras exists",
        FileExistsError,
    ),
    Refusal("damaged source", damaged_source, "a.txt.gz is not a whole .gz"),
    Refusal("another run", locked, "out/.translating.*in use", FolderInUse),
    Refusal("another model", other_model, "another model"),
    *(
        Refusal(
            f"threads {threads!r}",
            threads_of(threads),
            f"`threads`.*{threads}",
            (TypeError, ValueError),
        )
        for threads in (0, 1.5, "2")
    ),
    Refusal("folder of CTranslate2", folder_of("model.bin"), "CTranslate2.*0.7.0"),
    Refusal("text file", file_of("text.txt"), "text.txt"),
    Refusal(
        "search of a file",
        lambda: open_line_translator(TFLITE, beam_size=4),
        "translator.tflite.*beam_size",
    ),
]
COMPLETE = ("bulk/shards.py",)
