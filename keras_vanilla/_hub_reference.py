"""References to models on the Hugging Face hub, `hub:OWNER/NAME[@REVISION]`."""

import re
from dataclasses import dataclass

PREFIX = "hub:"
FORM = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>\S+))?", re.ASCII)


@dataclass(frozen=True)
class HubReference:
    """A reference to a model on the hub; `str` formats it for a command.

    Args:
        name: str, such as "Helsinki-NLP/opus-mt-de-en".
        revision: str or None. A branch, a tag or a commit; None means the main branch.
    """

    name: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> "HubReference":
        """Parses a reference, with or without `hub:`.

        Raises:
            ValueError: if the text is not a reference.
        """
        match = FORM.fullmatch(str(text).removeprefix(PREFIX))
        if match is None:
            raise ValueError(
                "A model of the hub must be written OWNER/NAME or OWNER/NAME@REVISION, "
                f"such as {PREFIX}Helsinki-NLP/opus-mt-de-en. Received: {text}"
            )
        return cls(match["name"], match["revision"])

    def __str__(self):
        revision = f"@{self.revision}" if self.revision else ""
        return f"{PREFIX}{self.name}{revision}"


def is_hub_reference(model: object) -> bool:
    """Returns True for a reference to the hub; a path would be `./hub:...`."""
    return str(model).startswith(PREFIX)
