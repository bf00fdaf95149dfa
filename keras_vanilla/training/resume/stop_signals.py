"""Takes a snapshot on Ctrl-C and SIGTERM before they end the training."""

import signal
import threading
from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Context manager in which SIGINT and SIGTERM first take a snapshot.

    After the snapshot, the previous handler is called: by default, SIGINT raises
    KeyboardInterrupt and SIGTERM ends the process. If it returns, training continues. A
    second signal does not wait for the snapshot. Signals that were ignored remain
    ignored. Outside the main thread, where Python allows no handlers, nothing changes.

    Args:
        take_snapshot: function without arguments, called before the handler.
    Attributes:
        delayed: bool. Whether signals wait for `let_through`.
        arrived: number of the waiting signal, or None.
    """

    def __init__(self, take_snapshot: Callable[[], None]):
        self._take_snapshot, self._previous = take_snapshot, {}
        self.delayed, self.arrived = False, None

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for signum in SIGNALS:
                previous = signal.getsignal(signum)
                if previous not in (signal.SIG_IGN, None):  # None: not set by Python
                    self._previous[signum] = previous
                    signal.signal(signum, self._handle)
        return self

    def __exit__(self, *error):
        for signum, previous in self._previous.items():
            if signal.getsignal(signum) == self._handle:  # not replaced since
                signal.signal(signum, previous)

    def let_through(self) -> None:
        """Ends the delay; a waiting signal takes effect."""
        self.delayed = False
        if self.arrived is not None:
            self._stop()

    def _handle(self, signum, frame):
        is_second, self.arrived = self.arrived is not None, signum
        if is_second:
            self._call_previous()
        elif not self.delayed:
            self._stop()

    def _stop(self):
        self._take_snapshot()
        self._call_previous()

    def _call_previous(self):
        signum, self.arrived = self.arrived, None
        signal.signal(signum, self._previous[signum])
        signal.raise_signal(signum)
        signal.signal(signum, self._handle)
