"""Parses the YAML that Marian writes, a mapping of names to scalars or lists."""

import re

# A quoted scalar, or a plain one that ends before a colon and a space.
_ENTRY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^"' \t].*?)[ \t]*:(?:[ \t]+(.*))?"""
)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')""")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPE_NAMES = '0abtnvfre"/\\ N_LP'
_ESCAPES = dict(
    zip(_ESCAPE_NAMES, '\0\a\b\t\n\v\f\r\x1b"/\\ \x85\xa0\u2028\u2029', strict=True)
)
_OTHER_YAML = tuple("|>&*!{}%@`")  # a plain scalar never begins with these
_WHITE = " \t\r"


def parse_flat_yaml(text: str, path: object) -> dict[str, str | list[str]]:
    """Parses a mapping; every scalar, including numbers, is returned as a str.

    Args:
        text: str. YAML with "name: value" lines, "? name" and ": value" lines, values
            that are lists of scalars, and plain or quoted scalars.
        path: the text's name in errors.
    Raises:
        ValueError: if a line is something else, or a name occurs twice.
    """
    parser = _Parser()
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            parser.read(line.rstrip(_WHITE))
        except ValueError as error:
            raise ValueError(f"{path} line {number} {error}: {line!r:.80}") from None
    return {key: "" if value is None else value for key, value in parser.values.items()}


class _Parser:
    """Parses line by line; `values` has None for names without a value so far."""

    def __init__(self):
        self.values = {}
        self._key = None  # the last one

    def read(self, line):
        inner = line.lstrip(_WHITE)
        if not inner or inner.startswith("#") or line in ("---", "..."):
            return
        if self._key is not None and (inner == "-" or inner.startswith("- ")):
            self._append(inner[1:].strip(_WHITE))
        elif self._key is not None and (inner == "[]" or line.startswith(": ")):
            self._set(inner.removeprefix(": "))
        elif line.startswith("? "):
            self._add(_scalar(line[2:].strip(_WHITE)))
        else:
            entry = _ENTRY.fullmatch(line)
            if entry is None:
                raise ValueError('is not of the form "name: value"')
            self._add(_scalar(entry[1]))
            if entry[2]:
                self._set(entry[2].strip(_WHITE))

    def _add(self, key):
        if key in self.values:
            raise ValueError("has a name for the second time")
        self._key, self.values[key] = key, None

    def _set(self, text):
        if self.values[self._key] is not None:
            raise ValueError("is a second value")
        if text.startswith("[") and text.endswith("]"):
            items = text[1:-1].strip(_WHITE)
            parts = items.split(",") if items else []
            self.values[self._key] = [_scalar(part.strip(_WHITE)) for part in parts]
        else:
            self.values[self._key] = _scalar(text)

    def _append(self, text):
        if self.values[self._key] is None:
            self.values[self._key] = []
        if not isinstance(self.values[self._key], list):
            raise ValueError("is a second value")
        self.values[self._key].append(_scalar(text))


def _scalar(text):
    if text.startswith(("'", '"')):
        if not _QUOTED.fullmatch(text):
            raise ValueError("has a quote without an end")
        if text[0] == "'":
            return text[1:-1].replace("''", "'")
        return _ESCAPE.sub(_unescaped, text[1:-1])
    if text.startswith(_OTHER_YAML):
        raise ValueError("has more than scalars and lists")
    return text


def _unescaped(escape):
    kind, digits = escape[1][0], escape[1][1:]
    if not digits and kind in _ESCAPES:
        return _ESCAPES[kind]
    code_point = int(digits, 16) if digits else -1
    if not 0 <= code_point < 0x110000 or 0xD800 <= code_point < 0xE000:
        raise ValueError(f"has the unknown escape {escape[0]!r}")
    return chr(code_point)
