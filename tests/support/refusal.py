"""A row of the table of refusals: a call, and what its error must say."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A call that must raise.

    Args:
        name: str. What is wrong, in a few words; the name of the test.
        call: function without arguments, or of `tmp_path`, an empty folder.
        pattern: str. Regular expression that the message must match: the name of the
            argument or file, and the value received. Not the whole sentence.
        error: class of the error.
    """

    name: str
    call: Callable
    pattern: str
    error: type[BaseException] = ValueError
