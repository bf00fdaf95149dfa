"""Inline tags of a text, and parts of it that are not translated."""

import re
from dataclasses import dataclass, field

TAG = r"""<(?:!--.*?--|/?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*)>"""
KEPT = "|".join(
    [
        r"`(?:[^`<]|<(?![A-Za-z/!]))+`",
        r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]+|#[xX][0-9A-Fa-f]+);",
        r"(?:https?://|(?<!\w)www\.)[^\s<>\"`]*[\w/#&=%~+-]",
        r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
        r"(?<!\w)\d+(?:[.,:/-]\d+)*(?![.,:/-]?\w)",  # 3.14, 2026-11-23
        # A4, x86-64, v1.2
        r"(?<!\w)(?=(?:\w+[.:/-])*\w*\d)[^\W\d]\w*(?:[.:/-]\w+)*",
    ]
)
MARKS = re.compile(f"(?P<tag>{TAG})|(?P<kept>{KEPT})", re.DOTALL)
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
    closing: str = ""
    children: list = field(default_factory=list)
    begin: int = 0
    end: int = 0

    @property
    def has_text(self):
        return self.kept or any(child.has_text for child in self.children)


def read_marks(text):
    """The text without its tags, and its Marks as a tree."""
    plain, end, root = "", 0, Mark("", 0, 0)
    opened = [root]
    for match in MARKS.finditer(text):
        plain += text[end : match.start()]
        end = match.end()
        mark = Mark(match[0], len(plain), len(plain), kept=match["tag"] is None)
        if mark.kept:
            plain += match[0]
            mark.source_end = len(plain)
            opened[-1].children.append(mark)
            continue
        name = _name(match[0])
        if name in BREAKS and plain[-1:].strip() and text[end : end + 1].strip():
            plain += " "
        _add_tag(opened, mark, name)
    _end_unmatched(opened, 1)
    return plain + text[end:], root.children


def _name(tag):
    match = NAME.match(tag)
    return match[1].lower() if match else ""


def _add_tag(opened, mark, name):
    tag = mark.opening
    if tag.startswith("</"):
        depths = [i for i in range(1, len(opened)) if _name(opened[i].opening) == name]
        if depths:
            _end_unmatched(opened, depths[-1] + 1)
            element = opened.pop()
            element.closing, element.source_end = tag, mark.source_begin
            return
    opened[-1].children.append(mark)
    if not (tag.startswith(("</", "<!")) or tag.endswith("/>") or name in VOID):
        opened.append(mark)


def _end_unmatched(opened, depth):
    """Tags that nothing closes are void: what follows them is their parent's."""
    while len(opened) > depth:
        unmatched = opened.pop()
        opened[-1].children += unmatched.children
        unmatched.children = []
