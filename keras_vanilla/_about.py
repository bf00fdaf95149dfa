"""What a translator says of itself: its name, its languages, examples, licences."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

LANGUAGE = re.compile("[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")  # BCP-47, roughly
MOST_EXAMPLES = 5
SHORT_EXAMPLE = range(12, 61)  # characters


@dataclasses.dataclass(frozen=True, kw_only=True)
class About:
    """What a translator says of itself; all of it may be left out.

    A `Translator` keeps it in its `.keras` file; exported files, model cards and the
    pages in the browser show it.

    Args:
        name: str or None. The model's name, such as "Captions".
        source_language: str or None. A BCP-47 tag such as "de" or "pt-BR".
        target_language: str or None. The same.
        examples: list or tuple of str, or None. Sentences in the source language to try
            the model with. None means that none were chosen: a training then takes
            short sentences of its validation text.
        model_license: str or None. Such as an SPDX identifier.
        data: str or None. What the model was trained on.
        data_license: str or None.
        converted_from: str or None. The model that it was converted from, such as
            "hub:OWNER/NAME@COMMIT".
    Raises:
        TypeError: if a value is not of its type.
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
        """The fields that are stated: those that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def updated(self, other: "About") -> "About":
        """This, with what the other states instead."""
        return dataclasses.replace(self, **other.stated())


def check_text(name: str, value: object) -> None:
    """Refuses what is neither None nor Unicode text.

    Raises:
        TypeError: if the value is neither None nor a str.
        ValueError: if it holds an unpaired surrogate.
    """
    if not isinstance(value, str | None):
        raise TypeError(f"`{name}` must be a str. Received: {value!r}")
    if value is not None and value != value.encode("utf-8", "replace").decode():
        raise ValueError(f"`{name}` must be Unicode text. Received: {value!r}")


def check_language(name: str, tag: str | None) -> None:
    """Refuses what is neither None nor looks like a BCP-47 tag.

    Raises:
        ValueError: if it does not.
    """
    if tag is not None and not LANGUAGE.fullmatch(tag):
        raise ValueError(
            f"`{name}` must be a BCP-47 tag such as 'de' or 'pt-BR'. Received: {tag!r}"
        )


def checked_examples(examples: Sequence[str]) -> tuple[str, ...]:
    """Examples as a tuple of texts.

    Raises:
        TypeError: if they are not a list or tuple of str.
        ValueError: if one is empty, or holds an unpaired surrogate.
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
    """A handful of short sentences, spread over a text, in its order.

    Args:
        sentences: iterable of str.
    Returns:
        Tuple of at most `MOST_EXAMPLES` different sentences of 12 to 60 characters; if
        there are fewer, also of those whose length is nearest to that.
    """
    different = dict.fromkeys(" ".join(sentence.split()) for sentence in sentences)
    different.pop("", None)
    short = [sentence for sentence in different if len(sentence) in SHORT_EXAMPLE]
    if len(short) < MOST_EXAMPLES:
        nearest = set(sorted(different, key=_characters_off)[:MOST_EXAMPLES])
        return tuple(sentence for sentence in different if sentence in nearest)
    return tuple(short[i * len(short) // MOST_EXAMPLES] for i in range(MOST_EXAMPLES))


def _characters_off(sentence):
    """How many characters a sentence has too few or too many."""
    return max(SHORT_EXAMPLE.start - len(sentence), len(sentence) - SHORT_EXAMPLE.stop)
