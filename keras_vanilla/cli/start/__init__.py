"""The console script `keras-vanilla`, which parses arguments before importing Keras.

Python executes a package before its modules, and `import keras_vanilla` imports Keras,
which takes seconds. `--help` and errors in the arguments should not wait for it. This
folder is therefore installed as a separate package, `keras_vanilla_cli` (setup.cfg,
`package_dir`). It imports `keras_vanilla.cli` without executing `keras_vanilla`, which
is executed before the first command that needs it.
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
    """Imports keras_vanilla in notebooks without messages of TensorFlow's C++ code.

    Other output on standard error, such as that of a crash, is still shown.
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
