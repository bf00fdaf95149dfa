"""Public functions and methods say the types of their arguments and results.

Excepted are `self`, `*args`, `**kwargs`, names that begin with an underscore, and the
methods that Keras or Python's protocols call: their types are those of the base class.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "keras_vanilla"
FILES = sorted(PACKAGE.rglob("*.py"))
KERAS_CALLS = {
    "build",
    "call",
    "compute_mask",
    "compute_output_shape",
    "compute_output_spec",
    "from_config",
    "get_config",
    "load_assets",
    "reset_state",
    "result",
    "save_assets",
    "update_state",
}


def public_functions(nodes, of_class=False):
    """(name, node) of public functions, and of public methods of public classes."""
    for node in nodes:
        if node.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef):
            if not node.name.startswith("_") and not (
                of_class and (node.name in KERAS_CALLS or _is_callback(node.name))
            ):
                yield node.name, node
            if of_class and node.name in ("__init__", "__call__"):
                yield node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for name, method in public_functions(node.body, of_class=True):
                yield f"{node.name}.{name}", method


def _is_callback(name):
    return name.startswith("on_") and name.endswith(("_begin", "_end"))


def missing_hints(source):
    """The arguments and results of public functions that have no annotation."""
    for name, node in public_functions(ast.parse(source).body):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for argument in arguments:
            if argument.annotation is None and argument.arg not in ("self", "cls"):
                yield f"{name}({argument.arg})"
        if node.returns is None and not name.endswith("__init__"):
            yield f"{name} ->"


def test_public_functions_have_type_hints():
    missing = {
        str(path.relative_to(PACKAGE)): names
        for path in FILES
        if (names := list(missing_hints(path.read_text(encoding="utf-8"))))
    }
    assert missing == {}
