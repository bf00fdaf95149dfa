"""What a running `fit` has changed in its process, undone when it ends."""

import contextlib
import threading
from types import FrameType

import keras


class RunningFit:
    """One running `fit`, and a stack of what is to be undone when it ends.

    Keras does not tell a callback that `fit` ends in an error. Such a `fit` is ended
    when the next one begins in its thread, if nobody has called `end` before.

    Args:
        model: keras.Model that is being trained.
        frame: the frame of a callback's method that `fit` has called.
    Attributes:
        undo: `contextlib.ExitStack`, closed when the training ends.
    """

    def __init__(self, model: keras.Model, frame: FrameType):
        self._model, self._history = model, getattr(model, "history", None)
        self._thread = threading.get_ident()
        self.undo = contextlib.ExitStack()
        for other in list(_open):
            if other._thread == self._thread and not other.is_running(frame):
                other.end()
        _open.append(self)

    def is_running(self, frame: FrameType | None) -> bool:
        """Whether the code at a frame was called by this `fit`.

        Args:
            frame: a frame of the thread in which `fit` was called.
        """
        if getattr(self._model, "history", None) is not self._history:
            return False  # each `fit` makes its own
        while frame is not None:
            is_fit = frame.f_code.co_name == "fit"
            if is_fit and frame.f_locals.get("self") is self._model:
                return True
            frame = frame.f_back
        return False

    def end(self) -> None:
        """Undoes what `undo` holds; a second call does nothing."""
        if self in _open:
            _open.remove(self)
        self.undo.close()


_open = []
