"""The examples in docstrings are true."""

import doctest
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import keras_vanilla
from keras_vanilla import layers

ROOT = Path(keras_vanilla.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.startswith("keras_vanilla"):
            raise
        pytest.skip(f"{error.name} is not installed")
    results = doctest.testmod(module, extraglobs={"np": np})
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("name", layers.__all__)
def test_layers_have_example_arguments_and_source(name):
    layer = getattr(layers, name)
    docstring = inspect.getdoc(layer)
    for section in ("Args:", "Call arguments:", "Returns:", "Example:", "Source:"):
        assert f"\n{section}" in docstring
    # In Python 3.11.2, a class that inherits its constructor has that of `__new__`.
    arguments = set(inspect.signature(layer.__init__).parameters) - {"self", "kwargs"}
    assert {name for name in arguments if f"    {name}: " not in docstring} == set()
