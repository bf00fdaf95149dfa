"""Translates files, killed at each access to the folder in turn; prints how often.

FOLDER

After each kill, all files in place must be whole, and the next run must complete them.
A translator that copies needs no model.
"""

import gzip
import itertools
import os
import signal
import sys
from pathlib import Path

from keras_vanilla.bulk import LineTranslation, shard, translate_shards

FOLDER = Path(sys.argv[1])
model, texts = FOLDER / "model", FOLDER / "in"
remaining = None  # accesses until the end


def die_at_zero():
    global remaining
    if remaining is not None:
        remaining -= 1
        if remaining < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def count_writes(event, arguments):
    """An audit hook, which Python calls before files are opened, renamed, removed."""
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.truncate"):
        if "out" in str(arguments[0]) or event == "os.truncate":
            die_at_zero()


def copied(lines):
    die_at_zero()
    problems = ["before m" if line < "m" else None for line in lines]
    return [LineTranslation(*each) for each in zip(lines, problems, strict=True)]


def files(folder):
    paths = [path for path in folder.glob("[a-z]*.*")]
    return {path.name: path.read_bytes() for path in paths}


def main():
    global remaining
    shard.open_line_translator = lambda model: copied
    shard.WINDOW = 3
    model.write_text("any")
    texts.mkdir()
    (texts / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    (texts / "b.txt.gz").write_bytes(gzip.compress(b"green\nhouse\ntwo\nriver\n"))
    sources = sorted(texts.iterdir())
    translate_shards(model, sources, FOLDER / "expected")
    expected = files(FOLDER / "expected")
    sys.addaudithook(count_writes)
    for kills in itertools.count():
        out = FOLDER / f"out-{kills}"
        child = os.fork()
        if child == 0:
            remaining = kills
            translate_shards(model, sources, out)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        partial = files(out)
        assert partial.items() <= expected.items(), (kills, partial)
        assert translate_shards(model, sources, out) == (9, 4), kills
        assert files(out) == expected, kills
        state = {path.name for path in out.rglob("*") if path.is_file()}
        assert state == {*expected, ".lock", "run.json", "record.json"}, (kills, state)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            print(kills)
            return


main()
