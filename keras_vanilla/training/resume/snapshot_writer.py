"""When a training's snapshots are taken, and how they get to the disk."""

import time
import warnings
from typing import Any

from keras_vanilla.training.resume.snapshots import Snapshots

SECONDS_BETWEEN = 300
STEPS_BETWEEN = 500  # of several processes, whose clocks do not agree


class SnapshotWriter:
    """Writes the snapshots of one `fit`, all but the first one in the background.

    Args:
        snapshots: Snapshots.
        every: int. Steps between snapshots; None means five minutes, and 500 steps
            where several processes train one model.
        in_other_processes: bool. Whether several processes train one model.
    """

    def __init__(
        self, snapshots: Snapshots, every: int | None, in_other_processes: bool
    ):
        self._snapshots = snapshots
        self._every = STEPS_BETWEEN if every is None and in_other_processes else every
        self._kept = None
        self.last_step, self._last_time = None, None

    def continue_after(self, step: int) -> None:
        """Begins with a snapshot that is there already."""
        self.last_step, self._last_time = step, time.monotonic()

    def is_time(self, step: int) -> bool:
        """Whether a snapshot is due after a step."""
        if self._every is None:
            return time.monotonic() - self._last_time > SECONDS_BETWEEN
        return step % self._every == 0

    def has(self, step: int) -> bool:
        """Whether nothing is lost if the training stops after a step."""
        return self.last_step == step or self._kept is not None

    def keep(self, snapshot: dict[str, Any]) -> None:
        """Holds a snapshot in memory until `finish` or the next `write`."""
        self._kept = snapshot

    def write(self, step: int, snapshot: dict[str, Any] | None) -> None:
        """Writes a snapshot; only one that is reported in a warning is not written.

        Args:
            step: int. Number of updates made.
            snapshot: what `Snapshots.save` takes, or None in processes that do not
                write.
        Raises:
            OSError: if it is the first one and cannot be written.
        """
        self.wait()
        if snapshot is not None and self.last_step is None:
            self._snapshots.save(step, snapshot)
        elif snapshot is not None:
            self._snapshots.save_in_background(step, snapshot)
        self._kept = None
        self.continue_after(step)

    def finish(self) -> None:
        """Writes what is held, and waits until everything is on the disk."""
        if self._kept is not None:
            self.write(self._kept["step"], self._kept)
        self.wait()

    def wait(self) -> None:
        """Waits for the write in the background; its error becomes a warning."""
        error = self._snapshots.wait()
        if error:
            warnings.warn(
                f"No snapshot after step {self.last_step:,} in "
                f"{self._snapshots.folder}: {error}. The training continues; if it is "
                "killed, it resumes from the last snapshot.",
                stacklevel=2,
            )
            self.last_step = -1  # not that one
