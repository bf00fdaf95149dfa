"""The display of work that takes long."""

import errno
import io
import re

import pytest

from keras_vanilla import _progress
from keras_vanilla._progress import Progress


class Terminal(io.StringIO):
    """A terminal of unknown width."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(_progress, "time", clock)
    return clock


def test_log_gets_lines_now_and_then(clock):
    stream = io.StringIO()
    with Progress("Tokenising", 4000, "lines", stream) as progress:
        for _ in range(80):
            clock.now += 1
            progress.update(50, loss=1.23456)
    assert stream.getvalue().splitlines() == [
        "Tokenising: 1,500 of 4,000 lines, 50 lines/s, loss 1.235, 0:50 left",
        "Tokenising: 3,000 of 4,000 lines, 50 lines/s, loss 1.235, 0:20 left",
        "Tokenising: 4,000 of 4,000 lines, 50 lines/s, loss 1.235",
    ]


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_speed_is_that_of_the_last_seconds(clock, kind, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with Progress("Training", 300, "steps", kind()) as progress:
        clock.now += 119
        for _ in range(100):
            clock.now += 1
            progress.update()
        assert "100 of 300 steps, 1 steps/s" in progress.status()
    assert "100 of 300 steps, 0.46 steps/s" in progress.status()


def test_unknown_total_is_not_shown(clock):
    stream = io.StringIO()
    progress = Progress("Reading", None, "lines", stream)
    clock.now += 2
    progress.update(3)
    progress.close()
    progress.close()
    assert stream.getvalue() == "Reading: 3 lines, 1.5 lines/s\n"


def lines_on(terminal):
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


@pytest.mark.parametrize("total", [4_000_000, None])
def test_terminal_line_is_short_and_rarely_redrawn(clock, monkeypatch, total):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with Progress("Training epoch 1 of 100", total, "steps", terminal) as progress:
        for _ in range(1000):
            clock.now += 0.01
            progress.update(50, token_crossentropy=1.23456, token_accuracy="61.2 %")
    assert 5 < len(lines_on(terminal)) <= 24
    assert max(map(len, lines_on(terminal))) <= 80


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_text_is_written_unchanged(stream):
    with Progress("Training", 10, "steps", stream) as progress:
        progress.write("BLEU [bold]41.5[/bold] in C:\\runs")
    assert "BLEU [bold]41.5[/bold] in C:\\runs\n" in stream.getvalue()


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_unwritable_display_does_not_stop_work(clock, kind, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")

    class Full(kind):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    done = 0
    with Progress("Training", 3, "steps", Full()) as progress:
        for _ in range(3):
            clock.now += 60
            progress.update()
            progress.write("epoch")
            done += 1
    assert done == progress.count == 3
