"""The parser of the arguments: options before, between and after the others."""

import argparse
from collections.abc import Sequence


class ArgumentParser(argparse.ArgumentParser):
    """Takes options before the positional arguments too, however many those may be.

    argparse decides at MODEL that no TEXT follows when an option does:
    `translate MODEL --beam-size 2 TEXT`. Arguments that a command does not know are
    refused here, with the command's own usage; argparse leaves that to the program,
    whose usage says nothing of the command.
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
        self._intermixing = True  # this method is called again, for options alone
        try:
            namespace, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixing = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown
