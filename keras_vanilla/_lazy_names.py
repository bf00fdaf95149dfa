"""Names of a package that are imported when they are first used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports its names when they are used.

    Args:
        package: str. The package's `__name__`.
        homes: each name, and the module below the package that defines it; a module
            is its own home.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{package}.{homes[name]}")
        except AttributeError as error:
            # Python would say that `package` has no such name, and hide the reason.
            raise ImportError(
                f"{package}.{name} cannot be imported: {error}"
            ) from error
        return module if homes[name] == name else getattr(module, name)

    return __getattr__
