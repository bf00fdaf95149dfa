"""Translates files, killed at each access to the folder in turn: FOLDER.

After each kill, all files in place must be whole, and the next run must complete them.
A translator that copies needs no model. Prints the number of kills.
"""

import gzip
import sys
from pathlib import Path

from killed_at_each_access import die_at_zero, kills

from keras_vanilla.bulk import LineTranslation, shard, translate_shards

FOLDER = Path(sys.argv[1])
model, texts = FOLDER / "model", FOLDER / "in"


def copied(lines):
    die_at_zero()
    problems = ["before m" if line < "m" else None for line in lines]
    return [LineTranslation(*each) for each in zip(lines, problems, strict=True)]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[a-z]*.*")}


def translate(number):
    return translate_shards(model, sources, FOLDER / f"out-{number}")


def check(number):
    out = FOLDER / f"out-{number}"
    partial = files(out)
    assert partial.items() <= expected.items(), (number, partial)
    assert translate(number) == (9, 4), number
    assert files(out) == expected, number
    state = {path.name for path in out.rglob("*") if path.is_file()}
    assert state == {*expected, ".lock", "run.json", "record.json"}, (number, state)


shard.open_line_translator = lambda model: copied
shard.WINDOW = 3
model.write_text("any")
texts.mkdir()
(texts / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
(texts / "b.txt.gz").write_bytes(gzip.compress(b"green\nhouse\ntwo\nriver\n"))
sources = sorted(texts.iterdir())
translate_shards(model, sources, FOLDER / "expected")
expected = files(FOLDER / "expected")
print(kills(translate, check, "out-"))
