"""An argument parser that accepts options at any position."""

import argparse
from collections.abc import Sequence


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
