"""Inline tags of a text, and parts of it that are not translated."""

import re
from dataclasses import dataclass, field
from unicodedata import category

TAG = r"""<(?:!--.*?--|/?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*)>"""
# What words have beside Python's `\w`: combining marks, such as the vowels of Hindi.
MARK = "".join(c for c in map(chr, range(0x300, 0x1F000)) if category(c)[0] == "M")
W = rf"[\w{MARK}]"
KEPT = "|".join(
    [
        r"`(?:[^`<]|<(?![A-Za-z/!]))+`",
        r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]+|#[xX][0-9A-Fa-f]+);",
        rf"(?:https?://|(?<!{W})www\.)[^\s<>\"`]*(?:{W}|[/#&=%~+-])",
        rf"(?<![\w{MARK}.+-])[\w{MARK}.+-]+@[\w{MARK}-]+(?:\.[\w{MARK}-]+)+",
    ]
)
MARKS = re.compile(f"(?P<tag>{TAG})|(?:{KEPT})", re.DOTALL)
# Between them: 3.14 or 2026-11-23; A4, x86-64 or v1.2, if there is a digit. What is
# neither is read over, so that nothing is read twice.
NUMBERS = re.compile(
    rf"(?P<number>(?<!{W})\d+(?:[.,:/-]\d+)*(?![.,:/-]?{W}))"
    rf"|(?P<name>(?<!{W})[^\W\d]{W}*(?:[.:/-]{W}+)*)|\d+(?:[.,:/-]\d+)*"
)
NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
VOID = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)
BREAKS = ("br", "hr", "img")  # where they separate words, so does a space


@dataclass
class Mark:
    """A tag, an element or a kept part, and the characters of the text it marks.

    `begin` and `end` are places between the words of the translation, given later.
    """

    opening: str
    source_begin: int
    source_end: int
    kept: bool = False
    name: str = ""
    closing: str = ""
    children: list = field(default_factory=list)
    begin: int = 0
    end: int = 0

    @property
    def has_text(self):
        return self.kept or any(child.has_text for child in self.children)


def read_marks(text):
    """The text without its tags, and its Marks as a tree."""
    if not isinstance(text, str):
        raise TypeError(f"`text` must be a str. Received: {text!r}")
    plain, end, root = "", 0, Mark("", 0, 0)
    opened = [root]
    for match, is_tag in _found(text):
        plain += text[end : match.start()]
        end = match.end()
        mark = Mark(match[0], len(plain), len(plain), kept=not is_tag)
        if mark.kept:
            plain += match[0]
            mark.source_end = len(plain)
            opened[-1].children.append(mark)
            continue
        mark.name = _name(match[0])
        if mark.name in BREAKS and plain[-1:].strip() and text[end : end + 1].strip():
            plain += " "
        _add_tag(opened, mark)
    _end_unmatched(opened, 1)
    return plain + text[end:], root.children


def _found(text):
    """The matches that are tags or kept parts, and whether they are tags."""
    end = 0
    for match in [*MARKS.finditer(text), None]:
        stop = match.start() if match else len(text)
        for found in NUMBERS.finditer(text, end, stop):
            if found["number"] or re.search(r"\d", found["name"] or ""):
                yield found, False
        if match:
            yield match, match["tag"] is not None
            end = match.end()


def _name(tag):
    match = NAME.match(tag)
    return match[1].lower() if match else ""


def _add_tag(opened, mark):
    tag = mark.opening
    if tag.startswith("</"):
        depths = range(len(opened) - 1, 0, -1)
        depth = next((i for i in depths if opened[i].name == mark.name), 0)
        if depth:
            _end_unmatched(opened, depth + 1)
            element = opened.pop()
            element.closing, element.source_end = tag, mark.source_begin
            return
    opened[-1].children.append(mark)
    if not (tag.startswith(("</", "<!")) or tag.endswith("/>") or mark.name in VOID):
        opened.append(mark)


def _end_unmatched(opened, depth):
    """Tags that nothing closes are void: what follows them is their parent's."""
    while len(opened) > depth:
        unmatched = opened.pop()
        opened[-1].children += unmatched.children
        unmatched.children = []
