"""The command line, which calls the library and reports errors in one sentence."""

import argparse
import sys
from collections.abc import Callable, Sequence

from keras_vanilla._checks import first_line
from keras_vanilla._out_of_memory import is_out_of_memory
from keras_vanilla._version import __version__
from keras_vanilla.cli import (
    caller,
    convert,
    distil,
    evaluate,
    export,
    plot,
    quickstart,
    serve_web,
    train,
    translate,
)
from keras_vanilla.cli.console import refuse_missing_models, say
from keras_vanilla.cli.streams import flushed_results, quiet, usable_streams

# In the order of a first project.
COMMANDS = (quickstart, train, distil, translate, evaluate)
COMMANDS += (convert, export, serve_web, caller, plot)
CTRL_C, BROKEN_PIPE = 130, 141  # 128 and the signal's number, as in a shell
LESS_MEMORY = {
    "train": "train on each batch in parts with --micro-batches N, or on smaller ones "
    "with --tokens-per-batch N",
    "translate": "a smaller --beam-size or --max-length needs less",
    "evaluate": "a smaller --beam-size needs less",
}


def main(
    arguments: Sequence[str] | None = None,
    before_command: Callable[[], None] | None = None,
) -> int:
    """Runs `keras-vanilla`; returns the exit status.

    Results are written to standard output, and progress, warnings and errors to
    standard error, all in UTF-8. For a user's mistake, the program prints one sentence
    and exits with status 1, or 2 if it is in the arguments. It exits with status 3 if
    lines of files have no translation or one without an end, with 130 on Ctrl-C, and
    with 141 if the reader closes the pipe (`| head`), as other programs do.

    Args:
        arguments: sequence of str; None means those of this process.
        before_command: function that is called after parsing the arguments and before
            running a command that needs Keras, or None.
    """
    options = argparse.Namespace(command=None)
    try:
        with usable_streams(), flushed_results():
            parser().parse_args(arguments, options)
            with quiet():
                if before_command and options.needs_keras:
                    refuse_missing_models(options)
                    before_command()
                return options.run(options) or 0
    except KeyboardInterrupt as stop:
        print(f"\n{str(stop) or 'Stopped.'}", file=sys.stderr)
        return CTRL_C
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:
        if not is_expected(error):
            raise
        say(sentence(error, options.command))
        return 1


def is_expected(error: Exception) -> bool:
    """Returns True if an error's text explains it; others are bugs of this package."""
    expected = ValueError, OSError, ImportError, RuntimeError, MemoryError
    return isinstance(error, (*expected, *_tensorflow_errors()))


def sentence(error: Exception, command: str | None = None) -> str:
    """Returns a sentence that describes an error.

    Args:
        error: an exception that `is_expected`.
        command: str or None. The name of the failed command, for the remedy.
    """
    if is_out_of_memory(error):
        remedy = LESS_MEMORY.get(command)
        return f"There is not enough memory{f': {remedy}' if remedy else ''}."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, _tensorflow_errors()):
        return first_line(error)  # followed by pages of locations in a graph
    return str(error)


def _tensorflow_errors():
    """Returns the class of TensorFlow's errors, if TensorFlow is in use."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if hasattr(tensorflow, "errors") else ()


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands; each command sets the function `run`."""
    every = ArgumentParser(
        prog="keras-vanilla",
        description="Train a translation Transformer, use it, and export it.",
    )
    every.add_argument("--version", action="version", version=__version__)
    commands = every.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND"
    )
    for module in COMMANDS:
        module.add_to(commands)
    return every


class ArgumentParser(argparse.ArgumentParser):
    """Accepts options before, between and after any number of positional arguments.

    In `translate MODEL --beam-size 2 TEXT`, argparse decides after MODEL that there is
    no TEXT. This class also refuses unknown arguments with the usage of the command;
    argparse shows the usage of the program, which does not describe the command.
    """

    _intermixing = False

    def parse_known_args(
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        has_commands = any(a.nargs == argparse.PARSER for a in self._actions)
        if has_commands or self._intermixing:
            return super().parse_known_args(args, namespace)
        self._intermixing = True  # this method is called again, for options only
        try:
            namespace, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixing = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown
