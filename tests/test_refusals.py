"""Each refusal of the package, as a row of a table.

A file of `tests/refusals` has the rows of one folder of the package, or of some of its
files: `ROWS`, a list of `Refusal`. Where it also has `COMPLETE`, the names of files of
the package, each `raise` in them must be reached by a row of any table.
"""

import ast
import importlib.util
import inspect
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
PACKAGE = ROOT.parent / "keras_vanilla"


def tables():
    for path in sorted((ROOT / "refusals").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"refusals_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield path.stem, module


TABLES = dict(tables())
ROWS = [
    pytest.param(row, id=f"{name}: {row.name}")
    for name, table in TABLES.items()
    for row in table.ROWS
]
raised_at = set()  # (file, line) of each `raise` that a row has reached


def places(error):
    """Where in the package an error, and the errors that it came from, were raised."""
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            path = Path(frame.filename)
            if path.is_relative_to(PACKAGE):
                yield path.relative_to(PACKAGE).as_posix(), frame.lineno
        error = error.__cause__ or error.__context__


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("row", ROWS)
def test_refusal_names_argument_and_value(row, tmp_path):
    parameters = inspect.signature(row.call).parameters.values()
    takes_folder = any(each.default is each.empty for each in parameters)
    arguments = [tmp_path] if takes_folder else []
    with pytest.raises(row.error, match=row.pattern) as caught:
        row.call(*arguments)
    raised_at.update(places(caught.value))


@pytest.mark.parametrize(
    "file", sorted({f for t in TABLES.values() for f in getattr(t, "COMPLETE", ())})
)
def test_every_raise_has_a_row(file, request):
    selected = sum("refusal_names" in item.name for item in request.session.items)
    if selected < len(ROWS):
        pytest.skip("needs the rows of all tables in the same process")
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    missing = [
        ast.unparse(node)[:80]
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and node.exc is not None  # not a bare `raise` again
        and not any((file, line) in raised_at for line in lines(node))
    ]
    assert not missing


def lines(node):
    return range(node.lineno, node.end_lineno + 1)
