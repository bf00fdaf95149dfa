"""Finds terms, and things to copy, that the translation of a text must contain."""

import functools
import itertools
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_vanilla._checks import check_choice, check_line, some_of
from keras_vanilla._graphemes import with_marks
from keras_vanilla.decoding import Terms
from keras_vanilla.decoding.hypothesis_end import output_length
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.translation.alignment import WORD_START
from keras_vanilla.translation.buckets import bucket_rows, bucket_width
from keras_vanilla.translation.piece_texts import (
    LANGUAGE_CODE,
    LATER_BYTE,
    UNSPACED,
    inside_words,
    piece_text,
)

# Numbers are whole: with separators, sign, currency or percent; not with letters.
_UNIT = "[$€£¥₹₽₩¢%‰°]"
_PHONE = r"(?:\+\d{1,3}|0\d{1,4})(?:(?:[ .-]\d+){2,}|[ -]\d{5,})"
_DIGITS = r"\d{1,3}(?: \d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,:/'’-]\d+)*"
_NO_MORE = rf"(?![.,:/'’-]?\w|{_UNIT})"
COPIED = {
    "url": re.compile(
        r"\b(?:https?://|ftp://|www\.)[^\s<>\"]*[^\s<>\".,;:!?()\[\]{}'»”]", re.I
    ),
    "email": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "tag": re.compile(
        r"</?[A-Za-z][^<>]*>|\{\{?[^{}\s]*\}?\}|%(?:\(\w+\)|\d+\$)?[sd](?!\w)"
    ),
    "number": re.compile(
        rf"(?<![\w.,:/+-])(?<!{_UNIT})"
        rf"(?>(?>{_PHONE}){_NO_MORE}|[-+]?{_UNIT}?[-+]?(?:{_DIGITS}){_UNIT}?){_NO_MORE}"
    ),
}
WORD = rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\w{{marks}}])+|\S"
# One form of apostrophes and hyphens.
PLAIN = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "‐": "-", "‑": "-"})
CONTEXTS = "( ", "", "("  # texts before a term: a space, nothing, a sign
MOST_KNOWN = 100_000  # number of terms and copies whose ids are cached


class _Form(NamedTuple):
    """A written form of a source term, and its translation."""

    words: list[str]
    folded: list[str]
    as_written: bool  # whether case matters
    translation: str


class RequiredTerms:
    """Finds terms in texts, and the translations that are required for them.

    Texts and terms are compared in Unicode's form NFKC, word by word; where several
    terms match, the longest is used. Terms in lower case match any case ("straße" also
    "STRASSE"), other terms only as written; all apostrophes and hyphens are equal. A
    translation counts as present if its pieces occur as the tokenizer produces them
    after a space, at the beginning of a text, or after a sign such as a quotation mark.
    It does not count within a longer word, such as "canine" in "canines", or directly
    after a full stop, comma, slash and similar signs.

    Args:
        tokenizer: TokenizerProtocol.
        model: Transformer.
        terms: dict of str that maps source terms to translations, or None.
        copy: list of str. Kinds of text to copy: "url", "email", "tag" (also `{name}`
            and `%s`) and "number".
    Raises:
        TypeError: if `terms` is not a dict of str, or `copy` is one str.
        ValueError: if a term or translation is empty, or `copy` has an unknown value.
    """

    def __init__(
        self,
        tokenizer: TokenizerProtocol,
        model: Any,
        terms: Mapping[str, str] | None = None,
        copy: Sequence[str] = (),
    ):
        self._tokenizer, self._model = tokenizer, model
        self._copy = _checked_copy(copy)
        self._terms = {}
        for source, translation in _checked_terms(terms).items():
            words = with_marks(WORD).findall(_normalised(source).translate(PLAIN))
            folded = [word.casefold() for word in words]
            in_lower_case = words == [word.lower() for word in words]
            translation = _normalised(translation)
            form = _Form(words, folded, not in_lower_case, translation)
            self._terms.setdefault(folded[0], []).append(form)
        for forms in self._terms.values():  # the first match is used
            forms.sort(key=lambda form: (-len(form.words), not form.as_written))
        self._forms_of = {}

    @functools.cached_property
    def _inside(self):
        """Cached for all pieces; it is slow, so only computed if a text has a term."""
        return inside_words(self._tokenizer)

    def of_text(self, text: str) -> dict[str, list[tuple[int, int, int]]]:
        """Required strings, each with the places in the text that require it.

        A place is the begin and end of characters of the normalised text, and the
        length of that text: "dog" in "A dog." is at (2, 5, 6).

        Args:
            text: str.
        """
        text, required = _normalised(text), {}  # span -> required string
        self._find_copied(
            text, required, [kind for kind in self._copy if kind != "number"]
        )
        self._find_terms(text.translate(PLAIN), required)
        self._find_copied(
            text, required, [kind for kind in self._copy if kind == "number"]
        )
        places = {}
        for begin, end in sorted(required):
            place = begin, end, len(text)
            places.setdefault(required[begin, end], []).append(place)
        return places

    def _find_copied(self, text, required, kinds):
        for kind in kinds:
            for match in COPIED[kind].finditer(text):
                if _is_free(match, required):
                    required[match.span()] = match[0]

    def _find_terms(self, text, required):
        if not self._terms:
            return
        words = with_marks(WORD).finditer(text)
        words = [match for match in words if _is_free(match, required)]
        i = 0
        while i < len(words):
            form = self._term_at(words, i)
            if form is None:
                i += 1
                continue
            span = words[i].start(), words[i + len(form.words) - 1].end()
            required[span] = form.translation
            i += len(form.words)

    def _term_at(self, words, i):
        for form in self._terms.get(words[i][0].casefold(), ()):
            some = [match[0] for match in words[i : i + len(form.words)]]
            if form.as_written:
                if some == form.words:
                    return form
            elif [word.casefold() for word in some] == form.folded:
                return form
        return None

    def batch(
        self,
        rows: Sequence[dict[str, list]],
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        max_length: int | None,
        source_width: int,
    ) -> Terms | None:
        """The terms of a batch, for the search; None if no text has any.

        Terms without pieces, or without room in the longest output, are left out.

        Args:
            rows: list of results of `of_text`.
            sources: lists of ids.
            prefixes: lists of ids.
            max_length: int or None, as in `DecodingConfig`.
            source_width: int. Length of the padded sources.
        """
        required = rows
        if len(self._forms_of) > MOST_KNOWN:
            self._forms_of.clear()
        rows = [
            self._with_room(row, len(source), len(prefix), max_length)
            for row, source, prefix in zip(rows, sources, prefixes, strict=True)
        ]
        if not any(rows):
            return None
        all_forms = [self._forms(what) for what in itertools.chain(*rows)]
        terms = bucket_rows(max(map(len, rows)))
        width = bucket_width([form for forms in all_forms for form in forms])
        shape = len(rows), terms, max(map(len, all_forms)), width
        ids, needed = np.full(shape, -1, "int32"), np.zeros(shape[:2], "int32")
        places = np.zeros((*shape[:2], source_width), bool)
        for b, row in enumerate(rows):
            place_of = self.places(required[b], sources[b]) if row else {}
            for j, (what, count) in enumerate(self._needed(row).items()):
                needed[b, j] = count
                for a, form in enumerate(self._forms(what)):
                    ids[b, j, a, : len(form)] = form
                places[b, j, : len(place_of[what])] = place_of[what]
        return Terms(ids, needed, self._inside, places)

    def places(
        self, row: dict[str, list], source: Sequence[int]
    ) -> dict[str, np.ndarray]:
        """Which source tokens are those of each required string, bool (S,).

        All are, if it is not known where in the text the tokens are.

        Args:
            row: result of `of_text` for the source.
            source: list of int. Source ids.
        """
        pieces = self._tokenizer.source_pieces([int(id_) for id_ in source[:-1]])
        is_code = np.array([bool(LANGUAGE_CODE.fullmatch(x)) for x in pieces], bool)
        # Of a character that is in bytes, the first one counts.
        sizes = [0 if LATER_BYTE.fullmatch(x) else len(piece_text(x)) for x in pieces]
        ends = np.cumsum(sizes, dtype="int32")
        begins, codes = ends - np.array(sizes, "int32"), sum(sizes[: is_code.sum()])
        has_unknown = self._tokenizer.unknown_id in source
        result = {}
        for what in row:
            # A term within another one is where the other is.
            spans = [
                span
                for other, spans in row.items()
                if other == what
                or any(self._begins(form, what) for form in self._forms(other)[:1])
                for span in spans
            ]
            result[what] = is_code  # a step that reads a code reads no word
            for begin, end, length in spans:
                shift = sum(sizes) - length  # a code, and the mark of the first word
                is_within = (begins < end + shift) & (ends > begin + shift)
                if has_unknown or shift not in (0, 1, 1 + codes):
                    is_within = True
                result[what] = result[what] | is_within
        return result

    def are_placed(
        self,
        row: dict[str, list],
        places: dict[str, np.ndarray],
        ids: Sequence[int],
        attended: Sequence[int],
    ) -> bool:
        """Whether each term begins where a token of its source is read.

        Args:
            row: result of `of_text` for the source.
            places: result of `places` for the source.
            ids: list of int. Ids of the translation.
            attended: list of int. The source token that each of them attends to most.
        """
        for what, spans in row.items():
            read = [places[what][attended[i]] for i in self._begins(ids, what)]
            if sum(read) < min(len(spans), len(read)):
                return False
        return True

    def unmet(self, row: dict[str, list], ids: Sequence[int], text: str) -> list[str]:
        """The required strings that a translation lacks, or contains too seldom.

        Args:
            row: result of `of_text` for the source.
            ids: list of int. Ids of the translation.
            text: str. The translation.
        """
        row = {what: len(places) for what, places in row.items()}
        possible = {what: count for what, count in row.items() if self._forms(what)}
        needed = row | self._needed(possible)
        return [
            what
            for what, count in needed.items()
            if (len(self._begins(ids, what)) if what in possible else text.count(what))
            < count
        ]

    def _with_room(self, row, source_length, prefix_length, max_length):
        """The first terms, as many as fit into the longest output with its end."""
        # The mask of a source may leave out its end.
        limit = output_length(self._model, max(source_length - 1, 1), max_length)
        room, kept = max(limit, prefix_length) - prefix_length - 1, Counter()
        for what, places in row.items():
            forms = self._forms(what)
            for _ in places:
                if forms and len(forms[0]) <= room:
                    room -= len(forms[0])
                    kept[what] += 1
        return dict(kept)

    def _needed(self, row):
        """The number of times each term must occur, with those within other terms."""
        return {
            what: sum(
                count * len(self._begins(self._forms(other)[0], what))
                if other != what
                else count
                for other, count in row.items()
            )
            for what in row
        }

    def _begins(self, ids, what):
        """Where the occurrences of a term begin, as defined in `Terms`."""
        ends, begins = self._inside
        ids = list(ids)

        def in_word(i):
            return 0 < i < len(ids) and ends[ids[i - 1]] and begins[ids[i]]

        begin_of = {  # one for each end
            end: end - len(form)
            for form in self._forms(what)
            for end in range(len(form), len(ids) + 1)
            if ids[end - len(form) : end] == form
            and not (in_word(end - len(form)) or in_word(end))
        }
        return list(begin_of.values())

    def _forms(self, what):
        """Lists of ids, the first of which can follow any ids."""
        if what not in self._forms_of:
            encode, names = self._tokenizer.encode_target, self._tokenizer.target_pieces
            forms = []
            for context in CONTEXTS:
                (ids,) = encode([context + what])
                form = _after_sign(ids[:-1], names) if context else ids[:-1]
                if not form or form in forms or not self._can_be_output(form):
                    continue
                if forms or context != "(":  # the first form can follow any token
                    forms.append(form)
            self._forms_of[what] = forms
        return self._forms_of[what]

    def _can_be_output(self, ids):
        tokenizer, model = self._tokenizer, self._model
        never = {tokenizer.unknown_id, model.pad_id, model.start_id, model.end_id}
        return not never.union(model.forbidden_ids).intersection(ids)


def warn_unmet(unmet: Sequence[Sequence[str]]) -> None:
    """Warns about translations that lack terms.

    Args:
        unmet: lists of missing strings, one for each text.
    Warns:
        UserWarning: if any string is missing.
    """
    numbers = [number for number, missing in enumerate(unmet, start=1) if missing]
    if numbers:
        warnings.warn(
            f"{len(numbers)} of {len(unmet)} translations lack a term: texts "
            f"{some_of(numbers)}; the first lacks {unmet[numbers[0] - 1][0]!r:.60}",
            stacklevel=3,
        )


def _checked_terms(terms):
    if not isinstance(terms, Mapping | None):
        raise TypeError(
            "`terms` must be a dict of str, the translation of each term. "
            f"Received: {terms!r:.60}"
        )
    terms = dict(terms or {})
    for number, pair in enumerate(terms.items(), start=1):
        for each in pair:
            check_line(number, each, "`terms`: term or translation")
        if not all(map(str.strip, pair)):
            raise ValueError(
                "A term of `terms` and its translation must not be empty. Received: "
                f"{pair[0]!r}: {pair[1]!r}"
            )
    return terms


def _checked_copy(copy):
    if isinstance(copy, str):
        raise TypeError(f"`copy` must be a list of str. Received: {copy!r:.60}")
    return [check_choice("copy", kind, tuple(COPIED)) for kind in copy]


def _is_free(match, required):
    """True if the span of a match overlaps no earlier match."""
    begin, end = match.span()
    return not any(begin < other_end and other < end for other, other_end in required)


def _normalised(text):
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _after_sign(ids, names):
    """The ids after the opening parenthesis; None if its piece has more characters."""
    for count in range(1, len(ids)):
        text = "".join(map(piece_text, names(ids[:count]))).lstrip(WORD_START)
        if text:
            return ids[count:] if text == "(" else None
    return None
