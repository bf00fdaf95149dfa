"""The error of a training whose numbers are no longer finite."""

from pathlib import Path

from keras_vanilla._checks import some_of


class Diverged(ValueError):
    """The loss or a weight is not a finite number.

    Args:
        what: str. What is not finite.
        step: int. The step, counted from 1, after which it is not.
        line_numbers: list of int. The lines of that step's batch; empty if not known.
        snapshot: path of the last good snapshot; None if there is none.
    """

    def __init__(
        self, what: str, step: int, line_numbers: list[int], snapshot: Path | None
    ):
        numbers = some_of(line_numbers, 20)
        batch = f", whose batch is lines {numbers} of the corpus" if numbers else ""
        super().__init__(
            f"{what} is not a number after step {step:,}{batch}. The last good "
            f"snapshot is {snapshot or 'not there yet'}; more warm-up steps lower the "
            "learning rate."
        )
        self.step, self.line_numbers, self.snapshot = step, line_numbers, snapshot
