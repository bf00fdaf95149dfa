"""The requirements in setup.cfg are the packages that the package imports."""

import ast
import configparser
import re
import sys
from pathlib import Path

import pytest
from architecture_page import ROOT

CONFIG = configparser.ConfigParser()
CONFIG.read(Path(__file__).resolve().parents[1] / "setup.cfg", encoding="utf-8")
TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")]
OF_DEVELOPMENT = {"test", "parity", "docs"}
PROGRAMS = {"jupyterlab", "nbclient", "pillow"}  # of the notebooks alone
BROUGHT_BY = {  # modules, and the requirements that have them or need them
    "PIL": "pillow",
    "google": "sentencepiece[protobuf]",
    # TensorFlow caps it: a bound here would draw an older TensorFlow.
    "h5py": "keras",
    "ray": "ray[data]",
    "sentencepiece": "sentencepiece[protobuf]",
}


def requirements(text):
    """The name of each package that is required, and its bounds."""
    pattern = r"([\w-]+(?:\[[\w, -]+\])?)([^;]*)"
    matches = (re.match(pattern, line) for line in text.split("\n") if line)
    return {match[1].replace(", ", ","): match[2].strip() for match in matches}


BASE = requirements(CONFIG["options"]["install_requires"])
EXTRAS = {
    extra: requirements(text)
    for extra, text in CONFIG["options.extras_require"].items()
}
OF_USERS = {name: EXTRAS[name] for name in EXTRAS if name not in OF_DEVELOPMENT}


def brought_by(extra):
    """The packages of an extra, and of those that it includes."""
    packages = dict(EXTRAS[extra])
    for name in EXTRAS[extra]:
        if included := re.fullmatch(r"keras-vanilla\[(.+)\]", name):
            del packages[name]
            for other in included[1].split(","):
                packages |= brought_by(other)
    return packages


def imported_packages(tree):
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add(node.module)
    names = {module.partition(".")[0] for module in modules}
    ours = {"keras_vanilla", "keras_vanilla_cli"}
    known = {*sys.stdlib_module_names, "compression", *ours}  # from Python 3.14 on
    return {BROUGHT_BY.get(n, n.replace("_", "-")) for n in names - known}


def test_imports_are_required():
    imported = set().union(*map(imported_packages, TREES))
    own = {extra: brought_by(extra) for extra in OF_USERS}
    optional = set().union(*own.values()) - PROGRAMS
    assert imported == BASE.keys() | optional
    assert not BASE.keys() & optional


def calls_of(name):
    for node in (node for tree in TREES for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield [getattr(argument, "value", None) for argument in node.args]


@pytest.mark.parametrize(
    ("packages", "extra"), sorted({tuple(c[1:]) for c in calls_of("extra_missing")})
)
def test_errors_name_right_extra(packages, extra):
    names = {name.partition("[")[0] for name in brought_by(extra)}
    assert names & set(re.findall(r"[\w-]+", packages))


def test_backends_have_extras():
    from keras_vanilla._checks import BACKENDS

    assert all(name in EXTRAS[name] for name in BACKENDS)
