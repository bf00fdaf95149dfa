"""One line's translation, or why there is none."""

from typing import NamedTuple

NO_END = "the translation reached its longest length without an end"


class LineTranslation(NamedTuple):
    """One line's translation.

    Fields:
        text: str; empty where the line cannot be translated.
        problem: str or None. Why it cannot be, or that it has no end.
    """

    text: str
    problem: str | None = None

    @property
    def is_left_out(self) -> bool:
        """Whether there is no translation; one without an end is one."""
        return self.problem not in (None, NO_END)
