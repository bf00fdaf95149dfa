"""Imports names of a package when they are first used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package that imports its names when they are used.

    Args:
        package: str. The package's `__name__`.
        homes: dict of name -> the module in the package that defines it. A module maps
            to itself.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{package}.{homes[name]}")
        except AttributeError as error:
            # Python would report that `package` has no such name and hide the reason.
            raise ImportError(
                f"{package}.{name} cannot be imported: {error}"
            ) from error
        return module if homes[name] == name else getattr(module, name)

    return __getattr__
