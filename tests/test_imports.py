"""Imports run one way only, and most parts import no backend."""

import ast
import re

import pytest
from architecture_page import ROOT, import_table

# The rule is the table in keras_vanilla/README.md; None there means everything.
TABLE = import_table()
MAY_IMPORT = {part: names for part, names in TABLE.items() if names is not None}
EVERYTHING = TABLE.keys() - MAY_IMPORT.keys()
HELPERS = {part for part in TABLE if re.match("_[a-z]", part)}
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
KERAS_ALONE = [
    path
    for path in FILES
    if path.parts[0] in ("layers", "decoding", "models")
    or path.as_posix() in {f"training/{x}.py" for x in ("loss", "metrics", "schedule")}
]


def imported_modules(source, package):
    """Absolute names of all that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func).rpartition(".")[2]
            name = node.args[0]
            if called in ("import_module", "__import__") and hasattr(name, "value"):
                if isinstance(name.value, str):
                    yield name.value


def imports_of(path):
    package = ("keras_vanilla", *path.parent.parts)
    return list(imported_modules((ROOT / path).read_text(encoding="utf-8"), package))


def part_of(path):
    return path.parts[0].removesuffix(".py")


def forbidden(part, imports):
    """The imports of ours that a part must not make."""
    allowed = MAY_IMPORT[part] | {part} | HELPERS
    ours = [name.split(".") for name in imports if name.startswith("keras_vanilla")]
    return [".".join(name) for name in ours if len(name) < 2 or name[1] not in allowed]


def test_parts_have_rules():
    assert {part_of(path) for path in FILES} <= set(TABLE)


def test_imports_run_one_way():
    wrong = {
        str(path): names
        for path in FILES
        if part_of(path) in MAY_IMPORT
        and (names := forbidden(part_of(path), imports_of(path)))
    }
    assert wrong == {}


def test_backend_neutral_files_import_no_backend():
    backends = {"tensorflow", "tensorflow_text", "jax", "torch"}
    wrong = {
        str(path): names
        for path in KERAS_ALONE
        if (names := backends & {n.split(".")[0] for n in imports_of(path)})
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "line",
    [
        "from keras_vanilla import Transformer",
        "from ..training import loss",
        "from .. import training",
        "import importlib; importlib.import_module('keras_vanilla.data')",
        "def f():\n    from keras_vanilla.data import batches",
    ],
)
def test_forbidden_import_is_seen(line):
    assert forbidden("layers", imported_modules(line, ("keras_vanilla", "layers")))
