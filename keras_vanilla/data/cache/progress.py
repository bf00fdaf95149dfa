"""How far a long making is."""

import threading
import time

SECONDS_BETWEEN = 5.0


class MakingProgress:
    """Counts lines, and says now and then how many are done and how fast.

    Args:
        total: int. Lines to do.
        say: called with a sentence.
    """

    def __init__(self, total, say):
        self._total, self._say, self._done = total, say, 0
        self._lock = threading.Lock()
        self._started = self._said = time.monotonic()

    def __call__(self, lines: int):
        """Notes so many lines more, from any thread."""
        with self._lock:
            self._done += lines
            now = time.monotonic()
            if self._done < self._total and now - self._said < SECONDS_BETWEEN:
                return
            self._said = now
            speed = self._done / max(now - self._started, 1e-9)
            self._say(
                f"{self._done:,} of {self._total:,} lines are tokenised, {speed:,.0f} "
                "lines/s."
            )
