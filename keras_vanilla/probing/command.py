"""A program that reads lines and writes as many, as a translator."""

import shlex
import subprocess
from collections.abc import Sequence


class CommandLines:
    """Translates lines with a program: lines in, as many lines out.

    Args:
        command: str, split as a shell does it; no shell runs it.
    Example:
        CommandLines("marian-decoder --config decoder.yml")(["Guten Morgen."])
    """

    def __init__(self, command: str):
        self._command = shlex.split(command)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The translations.

        Raises:
            FileNotFoundError: if there is no such program.
            RuntimeError: if it fails.
            ValueError: if it writes more or fewer lines, or anything but UTF-8.
        """
        lines = "".join(text + "\n" for text in texts)
        done = subprocess.run(self._command, input=lines.encode(), capture_output=True)
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise RuntimeError(
                f"{self._command[0]} failed with status {done.returncode}: {last}"
            )
        results = done.stdout.decode("utf-8").removesuffix("\n").split("\n")
        if len(results) != len(texts):
            raise ValueError(
                f"{self._command[0]} must write a line for each of {len(texts):,}. "
                f"Received: {len(results):,} lines"
            )
        return results
