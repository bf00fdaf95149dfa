"""Ctrl-C and SIGTERM during a training: first a snapshot, then what they did before."""

import inspect
import signal
import threading
from collections.abc import Callable

from keras_vanilla.training.resume.running_fit import RunningFit

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Handlers of SIGINT and SIGTERM that take a snapshot before a training ends.

    After the snapshot the handler from before is called: by default, SIGINT raises
    KeyboardInterrupt and SIGTERM ends the process. If it returns, the training
    continues. A second signal does not wait for the snapshot. Signals that were ignored
    before stay ignored; outside the main thread Python allows no handlers.

    Args:
        take_snapshot: function without arguments, called before the handler.
        fit: RunningFit; it is ended when the handler raises an error.
    Attributes:
        delayed: bool. Whether a signal waits for `let_through`.
        arrived: number of the signal that waits, or None.
    """

    def __init__(self, take_snapshot: Callable[[], None], fit: RunningFit):
        self._take_snapshot, self._fit = take_snapshot, fit
        self._previous = {}
        self.delayed, self.arrived = False, None

    @property
    def installed(self) -> bool:
        """Whether a signal would be noticed."""
        return bool(self._previous)

    def install(self) -> None:
        """Replaces the handlers of this process."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            previous = signal.getsignal(number)
            if previous not in (signal.SIG_IGN, None):  # None: not set by Python
                self._previous[number] = previous
                signal.signal(number, self._handle)

    def remove(self) -> None:
        """Puts the handlers from before back, unless somebody has replaced ours."""
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, previous)
        self._previous = {}

    def let_through(self) -> None:
        """Ends the delay; a signal that has waited takes effect."""
        self.delayed = False
        if self.arrived is not None:
            self._stop(self.arrived, inspect.currentframe())

    def _handle(self, number, frame):
        if not self._fit.is_running(frame):  # it has ended in an error
            previous = self._previous[number]
            self._fit.end()
            _call(previous, number, frame)
        elif self.arrived is not None:
            self._pass_on(number, frame)
        else:
            self.arrived = number
            if not self.delayed:
                self._stop(number, frame)

    def _stop(self, number, frame):
        self._take_snapshot()
        self._pass_on(number, frame)

    def _pass_on(self, number, frame):
        previous = self._previous[number]
        self.remove()
        self.arrived = None
        try:
            _call(previous, number, frame)
        except BaseException:
            self._fit.end()
            raise
        self.install()


def _call(handler, number, frame):
    if callable(handler):
        handler(number, frame)
    else:  # the system's own, which is in force again
        signal.raise_signal(number)
