"""The console script `keras-vanilla`: parses the arguments before Keras is imported.

Python executes a package before any module in it, and `import keras_vanilla` imports
Keras, which takes seconds. `--help` and errors in the arguments should not wait for it.
So this folder is installed beside the package, as `keras_vanilla_cli` (setup.cfg,
`package_dir`); it imports `keras_vanilla.cli` while the package itself is not executed
yet, and executes it before the first command that needs it.
"""

import importlib.util
import sys
from collections.abc import Callable


def main() -> int:
    """Runs the command line with this process's arguments; returns the exit status."""
    execute_package = _prepare_package("keras_vanilla")
    from keras_vanilla.cli import main

    return main(before_command=execute_package)


def import_quietly() -> None:
    """Imports keras_vanilla, without the messages of TensorFlow's C++ code.

    For notebooks. What else is written to standard error, such as the last words of a
    crash, is still shown.
    """
    execute_package = _prepare_package("keras_vanilla")
    from keras_vanilla.cli.streams import hide_messages

    hide_messages()
    execute_package()


def _prepare_package(name: str) -> Callable[[], None]:
    """Makes a package's modules importable; returns the function that executes it."""
    if name in sys.modules:
        return lambda: None
    spec = importlib.util.find_spec(name)
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    return lambda: spec.loader.exec_module(package)
