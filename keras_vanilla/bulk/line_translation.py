"""One line's translation, or why there is none."""

from typing import NamedTuple


class LineTranslation(NamedTuple):
    """One line's translation.

    Fields:
        text: str; empty where the line cannot be translated.
        problem: str or None. Why it cannot be, or that it has no end.
    """

    text: str
    problem: str | None = None
