"""The command line: arguments in, calls to the library, one-sentence errors out."""

import argparse
import sys
from collections.abc import Callable, Sequence

from keras_vanilla._version import __version__
from keras_vanilla.cli import (
    caller,
    convert,
    describe,
    distil,
    evaluate,
    export,
    plot,
    probe,
    quickstart,
    serve_web,
    train,
    translate,
)
from keras_vanilla.cli.arguments import ArgumentParser
from keras_vanilla.cli.console import say
from keras_vanilla.cli.errors import is_expected, sentence
from keras_vanilla.cli.streams import flushed_results, quiet, usable_streams

CTRL_C, BROKEN_PIPE = 130, 141  # 128 and the signal's number, as in a shell


def main(
    arguments: Sequence[str] | None = None,
    before_command: Callable[[], None] | None = None,
) -> int:
    """Runs `keras-vanilla`; returns the exit status.

    Results go to standard output; progress, warnings and errors to standard error, all
    in UTF-8. A user's mistake is one sentence and status 1 (2 for the arguments
    themselves); lines of files that have no translation, or one without an end, are
    status 3; Ctrl-C is status 130. A reader that wants no more (`| head`) ends the
    program with status 141, as it ends other programs.

    Args:
        arguments: sequence of str; None means those of this process.
        before_command: function called after the arguments are parsed and before a
            command that needs Keras runs, or None.
    """
    options = argparse.Namespace(command=None)
    try:
        with usable_streams(), flushed_results():
            parser().parse_args(arguments, options)
            with quiet():
                if before_command and options.needs_keras:
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


def parser() -> argparse.ArgumentParser:
    """The parser of every command; each sets `run`, a function of its options."""
    every = ArgumentParser(
        prog="keras-vanilla",
        description="Train a translation Transformer, use it, and export it.",
    )
    every.add_argument(
        "--version",
        action="version",
        version=__version__,
        help="print the version and exit",
    )
    commands = every.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND"
    )
    for module in (
        quickstart,
        train,
        distil,
        translate,
        evaluate,
        convert,
        export,
        describe,
        serve_web,
        caller,
        plot,
        probe,
    ):
        module.add_to(commands)
    return every
