"""Refusals of the modules at the package's top, and of the web server."""

import contextlib
import errno
import math
import os
from unittest import mock

import described_file
import numpy as np
from refusal import Refusal

from keras_vanilla import Transformer, _checks
from keras_vanilla._about import About
from keras_vanilla._atomic_write import (
    atomic_write,
    named_errors,
    refuse_existing,
    refuse_unwritable,
)
from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla._readable import check_finite
from keras_vanilla.layers import EncoderLayer
from keras_vanilla.web.runtime import runtime_folder
from keras_vanilla.web.server import PageServer, check_model

COMPLETE = (
    "_about.py",
    "_atomic_write.py",
    "_checks.py",
    "_folder_lock.py",
    "_readable.py",
    "web/server.py",
)


class Ragged:
    row_splits, shape = (0, 1), (2, None)


def in_read_only_folder(path):
    with mock.patch("os.access", return_value=False):  # root may write everywhere
        refuse_unwritable(path / "file")


def model():
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_ff": 4}
    return Transformer(9, d_model=4, num_heads=2, **sizes)


def served(path, port=0, **facts):
    path.write_bytes(described_file.content(**facts))
    return PageServer(path, path.parent, port)


def served_twice(folder):
    with served(folder / "a.tflite") as server:
        served(folder / "a.tflite", server.server_port)


def locked_twice(folder):
    with folder_lock(folder), folder_lock(folder):
        pass


def failing(error):
    with named_errors("a.txt"):
        raise error


def integer(value):
    return lambda: _checks.check_integer("n", value, 1, 9)


def number(value):
    return lambda: _checks.check_number("x", value, below=2, above=0)


def id_of(value):
    return lambda: _checks.check_ids("id", np.array([1, value]), 7)


def below_file(folder):
    (folder / "file").write_text("")
    with atomic_write(folder / "file" / "out", parents=True):
        pass


def taken_meanwhile(folder):
    with atomic_write(folder / "out", overwrite=False):
        (folder / "out").write_text("")


def without_npm(folder):
    with contextlib.ExitStack() as stack:
        for name, value in {"PATH": "", "XDG_CACHE_HOME": str(folder)}.items():
            stack.callback(os.environ.__setitem__, name, os.environ.get(name, ""))
            os.environ[name] = value
        runtime_folder(say=lambda sentence: None)


ERRORS = {
    ValueError: {
        # _about.py
        "BCP-47 .* 'German'": lambda: About(source_language="German"),
        "`target_language`.*''": lambda: About(target_language=""),
        "`data` must be Unicode text": lambda: About(data="\udcff"),
        "`examples` .* ' '": lambda: About(examples=["a", " "]),
        "`examples` must be Unicode": lambda: About(examples=["\udcff"]),
        # _checks.py
        **{f"`n` .* Received: {x!r}": integer(x) for x in (True, "3", 2.0, None, 0)},
        "`n` .* Received: 10": integer(10),
        "`n` .* 2147": lambda: _checks.check_integer("n", 2**31, 1),
        **{f"`x` .* above 0 .* {x!r}": number(x) for x in (True, "1", None, math.nan)},
        **{f"`x` .* below 2. .* {x!r}": number(x) for x in (math.inf, 0, 2)},
        "'cd'.* 'ab'": lambda: _checks.check_choice("c", "ab", ["cd"]),
        "id .* size, 7. Received: 7": id_of(7),
        "id .* 0.5": id_of(0.5),
        "It .* None": lambda: _checks.refuse_ragged("It", [Ragged()]),
        "Line 4 .* 1: ": lambda: _checks.check_line(4, "a\udcff"),
        r"\.keras.* Received: 'm.h5'": lambda: model().save("m.h5"),
        # _readable.py
        "'w' .* 1 of 2 .* nan": lambda: check_finite("w", np.array([1.0, math.nan])),
        # web/server.py
        "without translator.tflite": check_model,
        "a, .* 'steps'": lambda path: served(path / "a", form="steps", max_bytes=None),
        "Port 70000": lambda path: served(path / "a", 70_000),
        r"Port \d+ .* in use": served_twice,
        "Received: a folder without": lambda path: runtime_folder(path),
    },
    TypeError: {
        "`name` .* Received: 3": lambda: About(name=3),
        "`examples` .* 'a'": lambda: About(examples="a"),
        r"\[None\]": lambda: About(examples=[None]),
        "`examples` .* 5": lambda: About(examples=5),
        "Line 4 .* bytes": lambda: _checks.check_line(4, b"a"),
        "EncoderLayer.* 'd_ff'": lambda: EncoderLayer(2),
        "EncoderLayer has no argument 'droput'. Did you mean 'dropout'": lambda: (
            EncoderLayer(2, 3, droput=0.1)
        ),
    },
    OSError: {
        "file.*read-only": in_read_only_folder,
        "exists already": lambda path: refuse_existing(path),
        "a.txt": lambda: failing(OSError(errno.EIO, "bad")),
        "space.*a.txt": lambda: failing(RuntimeError(os.strerror(errno.ENOSPC))),
    },
    FileExistsError: {"out exists already": taken_meanwhile, "file": below_file},
    FileNotFoundError: {"no file or folder": lambda path: check_model(path / "a")},
    FolderInUse: {r"in use .* \d+": locked_twice},
    KeyError: {"k": lambda: failing(KeyError("k"))},
    RuntimeError: {"npm .* not installed": without_npm},
}
ROWS = [
    Refusal(pattern, call, pattern, error)
    for error, calls in ERRORS.items()
    for pattern, call in calls.items()
]
