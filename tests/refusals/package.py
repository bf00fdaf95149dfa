"""Refusals of the modules at the package's top, and of the web server."""

import contextlib
import errno
import math
import os
from unittest import mock

import described_file
import keras
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


ROWS = [
    # _about.py
    Refusal("name", lambda: About(name=3), "`name` .* Received: 3", TypeError),
    Refusal("language", lambda: About(source_language="German"), "BCP-47 .* 'German'"),
    Refusal("no language", lambda: About(target_language=""), "`target_language`.*''"),
    Refusal("surrogate", lambda: About(data="\udcff"), "`data` must be Unicode text"),
    Refusal("example", lambda: About(examples="a"), "`examples` .* 'a'", TypeError),
    Refusal("no text", lambda: About(examples=[None]), r"\[None\]", TypeError),
    Refusal("number", lambda: About(examples=5), "`examples` .* 5", TypeError),
    Refusal("blank", lambda: About(examples=["a", " "]), "`examples` .* ' '"),
    Refusal("half", lambda: About(examples=["\udcff"]), "`examples` must be Unicode"),
    # _checks.py
    *(
        Refusal(f"integer {value!r}", integer(value), f"`n` .* Received: {value!r}")
        for value in (True, "3", 2.0, None, 0, 10)
    ),
    Refusal("too large", lambda: _checks.check_integer("n", 2**31, 1), "`n` .* 2147"),
    *(
        Refusal(f"number {value!r}", number(value), f"`x` .* above 0 .* {value!r}")
        for value in (True, "1", None, math.nan, math.inf, 0, 2)
    ),
    Refusal("choice", lambda: _checks.check_choice("c", "ab", ["cd"]), "'cd'.* 'ab'"),
    Refusal("id", id_of(7), "id .* size, 7. Received: 7"),
    Refusal("half an id", id_of(0.5), "id .* 0.5"),
    Refusal("ragged", lambda: _checks.refuse_ragged("It", [Ragged()]), "It .* None"),
    Refusal("line", lambda: _checks.check_line(4, b"a"), "Line 4 .* bytes", TypeError),
    Refusal("half a line", lambda: _checks.check_line(4, "a\udcff"), "Line 4 .* 1: "),
    Refusal("legacy file", lambda: model().save("m.h5"), r"\.keras.* Received: 'm.h5'"),
    Refusal(
        "missing argument", lambda: EncoderLayer(2), "EncoderLayer.* 'd_ff'", TypeError
    ),
    Refusal(
        "unknown argument",
        lambda: EncoderLayer(2, 3, droput=0.1),
        "EncoderLayer has no argument 'droput'. Did you mean 'dropout'",
        TypeError,
    ),
    # _atomic_write.py, _folder_lock.py
    Refusal("read-only folder", in_read_only_folder, "file.*read-only", OSError),
    Refusal("exists", lambda path: refuse_existing(path), "exists already", OSError),
    Refusal("taken meanwhile", taken_meanwhile, "out exists already", FileExistsError),
    Refusal("below a file", below_file, "file", FileExistsError),
    Refusal("no name", lambda: failing(OSError(errno.EIO, "bad")), "a.txt", OSError),
    Refusal(
        "full disk",
        lambda: failing(RuntimeError(os.strerror(errno.ENOSPC))),
        "a.txt",
        OSError,
    ),
    Refusal("other error", lambda: failing(KeyError("k")), "k", KeyError),
    Refusal("locked", locked_twice, f"in use .* {os.getpid()}", FolderInUse),
    # _readable.py
    Refusal(
        "not finite",
        lambda: check_finite("w", keras.Variable([1.0, math.nan])),
        "'w' .* 1 of 2 .* nan",
    ),
    # web/server.py
    Refusal("no model", lambda path: check_model(path / "a"), "a", FileNotFoundError),
    Refusal("no site", check_model, "without translator.tflite"),
    Refusal(
        "form",
        lambda path: served(path / "a", form="steps", max_bytes=None),
        "a, .* 'steps'",
    ),
    Refusal("port", lambda path: served(path / "a", 70_000), "Port 70000"),
    Refusal("port in use", served_twice, r"Port \d+ .* in use"),
    Refusal("no npm", without_npm, "npm .* not installed", RuntimeError),
    Refusal(
        "no runtime", lambda path: runtime_folder(path), "Received: a folder without"
    ),
]
