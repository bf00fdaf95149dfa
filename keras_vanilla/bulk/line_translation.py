"""The translation of a line, and programs that translate lines."""

import shlex
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

NO_END = "the translation reached its longest length without an end"


class LineTranslation(NamedTuple):
    """The translation of a line.

    Fields:
        text: str; empty if the line cannot be translated.
        problem: str or None. The reason, or that the translation has no end.
    """

    text: str
    problem: str | None = None

    @property
    def is_left_out(self) -> bool:
        """True if there is no translation, not even one without an end."""
        return self.problem not in (None, NO_END)


class LineCommand:
    """Translates lines with a program that writes one line per input line.

    The program is started for each call, and must exit at the end of its input.

    Args:
        command: str. It is split as in a shell, but not run by a shell.
    Raises:
        ValueError: if the command is empty or has an unclosed quotation mark.
    Example:
        LineCommand("marian-decoder --config decoder.yml")(["Guten Morgen."])
    """

    def __init__(self, command: str):
        self.command = command
        self._arguments = shlex.split(command)
        if not self._arguments:
            raise ValueError(f"A command must name a program. Received: {command!r}")

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        """Returns the translations.

        Raises:
            FileNotFoundError: if there is no such program.
            RuntimeError: if the program fails.
            ValueError: if the number of lines differs, or the output is not UTF-8.
        """
        if not texts:
            return []
        program = self._arguments[0]
        lines = "".join(text + "\n" for text in texts)
        done = subprocess.run(
            self._arguments, input=lines.encode(), capture_output=True
        )
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise RuntimeError(
                f"{program} failed with status {done.returncode}: {last}"
            )
        results = _lines(program, done.stdout)
        if len(results) != len(texts):
            raise ValueError(
                f"{program} must write a line for each of {len(texts):,}. "
                f"Received: {len(results):,} lines"
            )
        return [LineTranslation(result) for result in results]


def _lines(program, output):
    try:
        return output.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        line = output[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{program} must write UTF-8. Received: byte 0x{output[error.start]:02x} "
            f"in line {line:,}"
        ) from error
