"""What keras_vanilla/README.md says of the package: its tree and its import table."""

import re
from pathlib import Path

import keras_vanilla

ROOT = Path(keras_vanilla.__file__).parent
PAGE = ROOT / "README.md"
LINE = re.compile(r"^(?P<indent> *)(?P<name>[\w.]+/?)(?:  +(?P<description>\S.*))?$")


def tree():
    """The description of each file and folder of the page's tree, by its path."""
    lines = _section("Files").split("```")[1].strip("\n").splitlines()[1:]
    entries, folders = {}, []
    for line in lines:
        match = LINE.match(line)
        assert match, f"{PAGE} has a line in its tree that names no file: {line!r}"
        folders = folders[: len(match["indent"]) // 2 - 1]
        entries["/".join([*folders, match["name"].rstrip("/")])] = match["description"]
        if match["name"].endswith("/"):
            folders.append(match["name"].rstrip("/"))
    return entries


def import_table():
    """What each part may import of ours: a set of names; None means everything."""
    table = {}
    for parts, allowed in re.findall(
        r"^\| (`.+?) \| (.+?) \|$", _section("Imports"), re.MULTILINE
    ):
        names = None if allowed == "everything" else set(_names(allowed))
        table.update(dict.fromkeys(_names(parts), names))
    return table


def _section(heading):
    text = PAGE.read_text(encoding="utf-8")
    return re.split(r"^## ", text.split(f"## {heading}\n")[1], flags=re.MULTILINE)[0]


def _names(cell):
    return re.findall(r"`(\w+)`", cell)
