"""The translation of a line, or the reason why there is none."""

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
