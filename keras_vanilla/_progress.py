"""A progress display: a bar on a terminal, or a line now and then elsewhere.

`rich` draws the bar. Keras needs it, so it is always installed.
"""

import collections
import contextlib
import sys
import time
from typing import Any, TextIO

SECONDS_BETWEEN_DRAWINGS = 0.5
SECONDS_BETWEEN_LINES = 30.0
DRAWINGS_OF_SPEED = 20  # the speed on a terminal is that since this many drawings


class Progress:
    """Counts and displays the progress of some work.

    On a terminal, one line is redrawn at most twice per second, within the width of the
    terminal (80 columns if unknown). Elsewhere, such as in a log file, a line is
    written about every 30 seconds and at the end. The speed is that of the last 10
    seconds on a terminal, since the previous line elsewhere, and at the end that of the
    whole work. Errors when writing, for example to a full disk, do not stop the work.

    Args:
        description: str. The work, such as "Tokenising".
        total: int or None. Number of units, or None if unknown.
        unit: str. Name of the units in the plural, such as "lines".
        stream: text file to write to; None means standard error.
    Example:
        with Progress("Tokenising", len(lines), "lines") as progress:
            for chunk in chunks:
                progress.update(len(chunk))
    """

    def __init__(
        self,
        description: str,
        total: int | None,
        unit: str,
        stream: TextIO | None = None,
    ):
        self.description, self.total, self.unit = description, total, unit
        self.count = 0
        self._stream = sys.stderr if stream is None else stream
        self._values: dict[str, Any] = {}
        self._started = self._shown = time.monotonic()
        self._closed = False
        on_terminal = getattr(self._stream, "isatty", lambda: False)()
        self._bar = self._task = None
        if on_terminal:
            self._bar, self._task = _bar(description, total, self._stream)
        # Time and count of the last drawings.
        kept = DRAWINGS_OF_SPEED if self._bar else 1
        self._drawings = collections.deque([(self._started, 0)], kept)

    def update(self, count: int = 1, **values: Any) -> None:
        """Adds to the count.

        Args:
            count: int. Units completed since the last call.
            **values: values to show after the count, such as `loss=1.5`. Each is shown
                until it is updated.
        """
        self.count += count
        self._values.update(values)
        pause = SECONDS_BETWEEN_DRAWINGS if self._bar else SECONDS_BETWEEN_LINES
        if time.monotonic() - self._shown >= pause:
            self._show()

    def write(self, text: str) -> None:
        """Writes a line of text, above the bar if there is one."""
        with contextlib.suppress(OSError):
            if self._bar and not self._closed:
                self._bar.console.print(text, soft_wrap=True)
            else:
                print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Shows the final count and ends the display; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._show()
        if self._bar:
            with contextlib.suppress(OSError):
                self._bar.stop()

    def status(self) -> str:
        """Returns "30 of 40 lines, 12 lines/s" with the values and the time left."""
        total = "" if self.total is None else f" of {self.total:,}"
        now = time.monotonic()
        since, before = (self._started, 0) if self._closed else self._drawings[0]
        speed = (self.count - before) / max(now - since, 1e-9)
        shown = f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
        texts = [f"{self.count:,}{total} {self.unit}", f"{shown} {self.unit}/s"]
        for name, value in self._values.items():
            value = f"{value:.4g}" if isinstance(value, float) else value
            texts.append(f"{name} {value}")
        if self.total and speed and not (self._bar or self._closed):
            texts.append(f"{minutes((self.total - self.count) / speed)} left")
        return ", ".join(texts)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def _show(self):
        with contextlib.suppress(OSError):
            if self._bar:
                status = self.status()
                self._bar.update(self._task, completed=self.count, status=status)
                self._bar.refresh()
            else:
                line = f"{self.description}: {self.status()}"
                print(line, file=self._stream, flush=True)
        self._shown = time.monotonic()
        self._drawings.append((self._shown, self.count))


def minutes(seconds: float) -> str:
    """Returns a time such as "12:34"."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def _bar(description, total, stream):
    """Returns the bar of rich on a terminal, and its only task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False)]
    columns += [BarColumn(bar_width=12)] if total else []
    columns += [TextColumn("{task.fields[status]}", markup=False)]
    columns += [TimeRemainingColumn(compact=True)] if total else []
    progress = Progress(
        *columns,
        console=Console(file=stream, markup=False, highlight=False),
        auto_refresh=False,  # a separate thread would outlive a killed program
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = progress.add_task(description, total=total, status="")
    with contextlib.suppress(OSError):
        progress.start()
    return progress, task
