"""The description of a translator: its name, languages, examples and licences."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

LANGUAGE = re.compile("[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")  # BCP-47, roughly
MOST_EXAMPLES = 5
SHORT_EXAMPLE = range(12, 61)  # characters


@dataclass(frozen=True, kw_only=True)
class About:
    """The description of a translator; all fields are optional.

    A `Translator` keeps it in its `.keras` file. Exported files, model cards and the
    pages in the browser show it.

    Args:
        name: str or None. The model's name, such as "Captions".
        source_language: str or None. A BCP-47 tag such as "de" or "pt-BR".
        target_language: str or None. The same.
        examples: list or tuple of str, or None. Sentences in the source language to try
            the model with. If None, a training uses short sentences of its validation
            text.
        model_license: str or None. For example an SPDX identifier.
        data: str or None. The model's training data.
        data_license: str or None. License of the data.
        converted_from: str or None. The model that it was converted from, such as
            "hub:OWNER/NAME@COMMIT".
    Raises:
        TypeError: if a value has the wrong type.
        ValueError: if a language is not a BCP-47 tag, a text is not Unicode, or an
            example is empty.
    Example:
        About(source_language="de", target_language="en", examples=["Ein Hund rennt."])
    """

    name: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    examples: Sequence[str] | None = None
    model_license: str | None = None
    data: str | None = None
    data_license: str | None = None
    converted_from: str | None = None

    def __post_init__(self):
        for name, value in vars(self).items():
            if name != "examples":
                check_text(name, value)
        for name in ("source_language", "target_language"):
            check_language(name, getattr(self, name))
        if self.examples is not None:
            object.__setattr__(self, "examples", checked_examples(self.examples))

    def stated(self) -> dict[str, Any]:
        """Returns the fields that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def updated(self, other: "About") -> "About":
        """Returns a copy with the fields that `other` states."""
        return replace(self, **other.stated())


def check_text(name: str, value: object) -> None:
    """Refuses a value that is neither None nor Unicode text.

    Raises:
        TypeError: if the value is neither None nor a str.
        ValueError: if it contains an unpaired surrogate.
    """
    if not isinstance(value, str | None):
        raise TypeError(f"`{name}` must be a str. Received: {value!r}")
    if value is not None and value != value.encode("utf-8", "replace").decode():
        raise ValueError(f"`{name}` must be Unicode text. Received: {value!r}")


def check_language(name: str, tag: str | None) -> None:
    """Refuses a value that is neither None nor similar to a BCP-47 tag.

    Raises:
        ValueError: if the value is refused.
    """
    if tag is not None and not LANGUAGE.fullmatch(tag):
        raise ValueError(
            f"`{name}` must be a BCP-47 tag such as 'de' or 'pt-BR'. Received: {tag!r}"
        )


def checked_examples(examples: Sequence[str]) -> tuple[str, ...]:
    """Returns examples as a tuple of texts.

    Raises:
        TypeError: if they are not a list or tuple of str.
        ValueError: if one is empty, or contains an unpaired surrogate.
    """
    if not isinstance(examples, list | tuple) or not all(
        isinstance(example, str) for example in examples
    ):
        raise TypeError(f"`examples` must be a list of str. Received: {examples!r}")
    for example in examples:
        check_text("examples", example)
        if not example.strip():
            raise ValueError(f"`examples` must have text. Received: {example!r}")
    return tuple(examples)


def short_sentences(sentences: Iterable[str]) -> tuple[str, ...]:
    """Selects a few short sentences from all parts of a text, in its order.

    Args:
        sentences: iterable of str.
    Returns:
        Tuple of at most `MOST_EXAMPLES` different sentences of 12 to 60 characters. If
        there are too few, those with the nearest lengths are added.
    """
    different = dict.fromkeys(" ".join(sentence.split()) for sentence in sentences)
    different.pop("", None)
    short = [sentence for sentence in different if len(sentence) in SHORT_EXAMPLE]
    if len(short) < MOST_EXAMPLES:
        least, most = SHORT_EXAMPLE.start, SHORT_EXAMPLE.stop
        # By the number of characters that a sentence has too few or too many.
        by_length = sorted(different, key=lambda s: max(least - len(s), len(s) - most))
        nearest = set(by_length[:MOST_EXAMPLES])
        return tuple(sentence for sentence in different if sentence in nearest)
    return tuple(short[i * len(short) // MOST_EXAMPLES] for i in range(MOST_EXAMPLES))
