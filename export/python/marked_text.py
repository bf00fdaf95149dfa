"""Translates a text with inline tags, such as `<b>`, and parts that stay as they are.

Tags and `code`, addresses, numbers and entities such as `&amp;` come out once each. It
needs a file of `export --outputs alignment`. A tag goes where the words went that it
marks, as the model's attention links them, which is at times wrong.
"""

import re

from marks import MARK, read_marks  # the file beside this one

# What may enclose a number or an address in its sentence.
BEFORE = re.compile(r"""["'(\[{“‘„«¿¡]*""")
NO_WORD = rf"[^\w{MARK}\s]*"
AFTER = re.compile(r"""["')\]}”’».,;:!?…。，、！？]*\Z""")


def translate_marked(translator, text):
    """The translation of a text, with its tags and kept parts.

    Every tag occurs once; pairs are balanced and nested as they were. Siblings never
    overlap. What marks no word follows the translation of the word before it.

    Args:
        translator: Translator, or a function that returns its Translation.
        text: str.
    Raises:
        TypeError: if `text` is not a str.
        ValueError: if the file does not link words with their source; and as
            `translator`.
    """
    plain, marks = read_marks(text)
    result = translator(plain)
    if not marks:
        return result.text
    linked = [word for word in result.words if word.source_begin is not None]
    if result.text.strip() and not linked:
        raise ValueError("The file links no words: export it with --outputs alignment.")
    return put_marks(plain, marks, result)


def put_marks(plain, marks, result):
    """The translation with marks.

    Args:
        plain: str, as `read_marks` returns it.
        marks: list of Mark, the same.
        result: Translation of `plain`.
    """
    links = [_link(plain, word) for word in result.words]
    kept = _kept_parts(marks)
    dropped = {i for i, link in enumerate(links) if any(link(mark) for mark in kept)}
    _place(marks, 0, len(links), result.words, links)
    writer = _Writer(plain, result, dropped)
    writer.write(marks, 0, len(links))
    return writer.text


def _kept_parts(marks):
    children = [part for mark in marks for part in _kept_parts(mark.children)]
    return [mark for mark in marks if mark.kept] + children


def _link(plain, word):
    """A function of a Mark: whether it marks the word's source, or a letter of it."""
    source = plain[word.source_begin : word.source_end]
    letters = r"\w" if re.search(r"\w", source) else r"\S"

    def is_marked(mark):
        begin = max(word.source_begin, mark.source_begin)
        end = min(word.source_end, mark.source_end)
        return bool(re.search(letters, plain[begin:end]))

    return is_marked


def _place(marks, low, high, words, links):
    """Gives marks their places between `low` and `high`, and their children theirs."""
    for mark in marks:
        own = [i for i in range(low, high) if links[i](mark)]
        if mark.kept:
            own = _longest_run(own)
        if own:
            mark.begin, mark.end = own[0], own[-1] + 1
        else:
            mark.begin = mark.end = _after_neighbour(mark, low, high, words)
    marks.sort(key=lambda mark: (mark.begin, mark.end))  # as they stand in the output
    for mark in marks:
        mark.begin = max(mark.begin, low)
        low = mark.end = max(mark.begin, mark.end)
        _place(mark.children, mark.begin, mark.end, words, links)


def _longest_run(places):
    runs = []
    for place in places:
        if runs and runs[-1][-1] + 1 == place:
            runs[-1].append(place)
        else:
            runs.append([place])
    return max(runs, key=len, default=[])


def _after_neighbour(mark, low, high, words):
    """The place after the word whose source is the nearest before a mark."""
    linked = [
        i for i in range(low, high) if words[i].source_begin < words[i].source_end
    ]
    before = [i for i in linked if words[i].source_end <= mark.source_begin]
    if len(before) == len(linked):
        return high
    nearest = max(before, key=lambda i: (words[i].source_end, i), default=low - 1)
    return nearest + 1


class _Writer:
    """Writes words and marks, with the white space that is between the words."""

    def __init__(self, plain, result, dropped):
        self.text, self._space, self._fresh = "", "", True
        self._plain, self._result, self._dropped = plain, result, dropped

    def write(self, marks, low, high):
        """The words from `low` to `high`, with the marks among them."""
        place = low
        for mark in marks:
            self._write_words(place, mark.begin, low)
            self._write_mark(mark, low)
            place = mark.end
        self._write_words(place, high, low)

    def _write_words(self, begin, end, low):
        for i in range(begin, end):
            self._add_gap(i, low)
            if i not in self._dropped:
                word = self._result.words[i]
                self._add(self._result.text[word.begin : word.end])

    def _write_mark(self, mark, low):
        added = mark.begin == mark.end and mark.has_text
        if added:
            self._space = self._space or " "
        elif mark.begin < mark.end:
            self._add_gap(mark.begin, low)
        if mark.kept:
            self._add(self._with_punctuation(mark))
        elif mark.closing:
            self._add_element(mark)
        else:
            self.text += mark.opening
        if added:
            self._space = " "

    def _add_element(self, mark):
        if mark.has_text or mark.begin < mark.end:
            self._flush()
        was_fresh, self._fresh = self._fresh, True
        self.text += mark.opening
        self.write(mark.children, mark.begin, mark.end)
        self.text += mark.closing
        self._fresh = self._fresh and was_fresh

    def _with_punctuation(self, mark):
        """A kept part, with what its word has before and after it, as in “(3.14)”."""
        if mark.begin == mark.end:
            return mark.opening
        words = self._result.words[mark.begin : mark.end]
        own = self._result.text[words[0].begin : words[-1].end]
        if re.fullmatch(rf"{NO_WORD}{re.escape(mark.opening)}{NO_WORD}", own):
            return own
        alone_before = not self._plain[: mark.source_begin][-1:].strip()
        alone_after = not self._plain[mark.source_end :][:1].strip()
        before = "" if alone_before else BEFORE.match(own)[0]
        after = "" if alone_after else AFTER.search(own)[0]
        return before + mark.opening + after

    def _add_gap(self, i, low):
        """The white space before a word; of several, the one with a line's end."""
        if i > low:
            words = self._result.words
            gap = self._result.text[words[i - 1].end : words[i].begin]
            self._space = max(self._space, gap, key=_lines_and_size)

    def _add(self, text):
        self._flush()
        self.text += text
        self._fresh = False

    def _flush(self):
        if not self._fresh:
            self.text += self._space
        self._space = ""


def _lines_and_size(space):
    return space.count("\n"), len(space)
