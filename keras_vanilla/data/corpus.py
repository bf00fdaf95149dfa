"""Parallel text: the same sentences in two languages, line by line."""

import hashlib
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain, zip_longest
from typing import BinaryIO

import numpy as np

from keras_vanilla._checks import (
    check_integer,
    check_line,
    extra_missing,
    some_of,
)
from keras_vanilla.data.id_store import IdStore, encode_corpus
from keras_vanilla.data.lines import (
    Lines,
    Packing,
    Paths,
    check_line_counts,
    lines_of,
    names_of,
    paired_paths,
    paths_of,
    refuse_copies,
)
from keras_vanilla.data.table import Columns, TableFormat, table_rows
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.id_rows import check_iterable

NUMBERS = range(10_000)
ABSENT = object()  # in place of a text without its translation
FIRST_DATE, LAST_DATE = date(1900, 1, 1), date(2099, 12, 31)


def read_lines(file: str | os.PathLike | BinaryIO) -> list[str]:
    """The lines of a UTF-8 text file, without their line ends.

    Only a newline ends a line. A carriage return before it, and a byte-order mark at
    the start of the file, are dropped.

    Args:
        file: path (decompressed if it ends in ".gz", ".xz" or ".zst") or binary stream.
    Returns:
        List of str.
    Raises:
        FileNotFoundError: if the file does not exist.
        IsADirectoryError: if it is a folder.
        ValueError: if a line is not UTF-8, or a compressed file is damaged.
        ImportError: if it ends in ".zst" and Python cannot read this format.
    """
    return [line.decode() for line in lines_of(file)]


def same_digits(source: str, target: str) -> bool:
    """True if two texts have the same digits in any order, for `ParallelCorpus.filter`.

    Separators are ignored: "3,000.5" has the digits of "3 000,5". A number in words or
    a time of another clock differs.
    """
    one, other = (
        sorted(int(each) for each in text if each.isdecimal())
        for text in (source, target)
    )
    return one == other


class ParallelCorpus:
    """Pairs of source and target sentences, stored as compact bytes.

    Iteration and indexing give `(source, target)`; a slice is a corpus, and
    `corpus + other` has the pairs of both. A pair with only white space on either side
    is left out and reported.

    Args:
        sources: iterable of str.
        targets: iterable of str, of the same length.
        line_numbers: int array. Line number of each pair; None means 1, 2, 3, ...
        report: dict of reason -> line numbers of pairs that were left out before.
        origin: str. Name of this text in errors.
    Attributes:
        sources: read-only sequence of str.
        targets: read-only sequence of str.
        line_numbers: int64 array. Line number of each pair, from 1.
        report: dict of reason -> line numbers of the pairs left out.
    Raises:
        TypeError: if `sources` or `targets` is one str, or a sentence is not a str.
        ValueError: if the numbers of sentences or line numbers differ, no pairs remain,
            or a sentence has an unpaired surrogate.
    """

    def __init__(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        line_numbers: Sequence[int] | np.ndarray | None = None,
        report: dict[str, list[int]] | None = None,
        origin: str = "The corpus",
    ):
        if not isinstance(sources, Lines) or not isinstance(targets, Lines):
            check_iterable("sources", sources)
            check_iterable("targets", targets)
            sources, targets = _packed(
                zip_longest(sources, targets, fillvalue=ABSENT), origin
            )
        count = len(sources)
        if line_numbers is None:
            line_numbers = range(1, count + 1)
        if len(targets) != count or len(line_numbers) != count:
            raise ValueError(
                f"{origin}: sources, targets and `line_numbers` must be of one length. "
                f"Received: {count}, {len(targets)} and {len(line_numbers)}"
            )
        self.line_numbers = np.array(line_numbers, dtype=np.int64)
        self.report = {reason: list(lines) for reason, lines in (report or {}).items()}
        self.sources, self.targets, self.origin = sources, targets, origin
        self._leave_out_empty()

    @classmethod
    def from_files(cls, source: Paths, target: Paths) -> "ParallelCorpus":
        """Reads source and target text files with the same number of lines.

        Args:
            source: path of UTF-8 text, one sentence per line, decompressed if it ends
                in ".gz", ".xz" or ".zst" (which needs Python 3.14 or `backports.zstd`).
                Or a list of paths; line numbers continue from file to file.
            target: path of its translation, line by line; or a list of paths of the
                same length.
        Raises:
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            ValueError: if there are no files, the numbers of files or lines differ,
                source and target are the same text (for a model that copies, use
                `ParallelCorpus(lines, lines)`), a line is not UTF-8, a compressed file
                is damaged, or no pairs remain.
            ImportError: if a path ends in ".zst" and Python cannot read this format.
        Example:
            corpus = ParallelCorpus.from_files("train.en", "train.fr")
        """
        paths = paired_paths(source, target)
        packings = Packing(), Packing()
        for pair in paths:
            before = [len(packing) for packing in packings]
            for packing, path in zip(packings, pair, strict=True):
                packing.add_file(path)
            after = [len(packing) for packing in packings]
            check_line_counts(*pair, *np.subtract(after, before).tolist())
        lines = (packing.lines() for packing in packings)
        corpus = cls(*lines, origin=names_of(paths))
        refuse_copies(*paths[0], corpus.sources.is_same_as(corpus.targets))
        return corpus

    @classmethod
    def from_table(
        cls,
        path: Paths,
        columns: Columns | None = None,
        *,
        header: bool | None = None,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        on_bad_rows: str = "error",
    ) -> "ParallelCorpus":
        """Reads two columns of a text file with one pair per row.

        A file whose name ends in ".csv" is comma-separated and quoted as by Python's
        `csv`: fields with a comma, a quote or a line end are in double quotes, and
        quotes in them are doubled. Other files are tab-separated, without quoting:
        quotes are ordinary characters.

        The line number of a pair is that of the first line of its row.

        Args:
            path: path of a text, decompressed if it ends in ".gz", ".xz" or ".zst"
                (such as "pairs.csv.gz"). Or a list of paths; line numbers continue from
                file to file.
            columns: the columns of source and translation, each a number from 1, or a
                name in the first row. None means a table with exactly two columns.
            header: bool or None. Whether the first row has names and is not a pair.
                None: it has if `columns` has a name; a first row of two words, unlike
                the rows after it, is an error.
            delimiter: str or None. A character other than comma or tab between fields.
            encoding: str. "utf-16", for example; Python's name.
            on_bad_rows: "error", or "skip" rows with too few columns (or more than two
                without `columns`), a NUL, or wrong encoding or quoting. `report` has
                the lines of each reason.
        Raises:
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            ValueError: if there are no files, an argument has none of these values, a
                row is bad and not skipped, a name is missing in the first row or occurs
                twice, the first row may have names, a compressed file is damaged, or no
                pairs remain.
            ImportError: if a path ends in ".zst" and Python cannot read this format.
        Example:
            corpus = ParallelCorpus.from_table("pairs.tsv", columns=("en", "de"))
        """
        table = TableFormat(
            columns=columns,
            header=header,
            delimiter=delimiter,
            encoding=encoding,
            on_bad_rows=on_bad_rows,
        )
        paths, numbers, report = paths_of(path), array("q"), {}
        if not paths:
            raise ValueError("`path` must be a file, or several. Received: none")
        packings = Packing(), Packing()
        for number, *texts in table_rows(paths, table, report):
            numbers.append(number)
            for packing, text in zip(packings, texts, strict=True):
                packing.add(text.encode())
        sides = (packing.lines() for packing in packings)
        return cls(*sides, numbers, report, origin=some_of(paths, 3))

    @classmethod
    def numbers(cls, source: str = "en", target: str = "fr") -> "ParallelCorpus":
        """Generates numbers from 0 to 9,999 in words, and all dates from 1900 to 2099.

        They are written by `num2words` and `babel`, in any two languages that both
        packages support.

        Args:
            source: str. Language, such as "en".
            target: str. Language, such as "fr".
        Raises:
            ImportError: if num2words or babel is missing.
            ValueError: if one of the packages does not support a language.
        """
        sides = [_numbers_and_dates(language) for language in (source, target)]
        return cls(*sides, origin=f"The numbers in {source} and {target}")

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[str, str]], origin: str = "The corpus"
    ) -> "ParallelCorpus":
        """Creates a corpus from pairs in memory; the first has line number 1.

        Args:
            pairs: iterable of (source, target), both str.
            origin: str. Name of this text in errors.
        Raises:
            TypeError: if a pair is not two str.
            ValueError: if no pairs remain, or a sentence has an unpaired surrogate.
        Example:
            ParallelCorpus.from_pairs([("one", "een"), ("two", "twee")])
        """
        return cls(*_packed(check_iterable("pairs", pairs), origin), origin=origin)

    def filter(self, keep: Callable[[str, str], bool]) -> "ParallelCorpus":
        """Keeps the pairs for which a function is true; others are reported.

        Their reason in the report is "filter".

        Args:
            keep: function of the source and the target of a pair; returns whether to
                keep it.
        Raises:
            ValueError: if no pairs remain.
        Example:
            corpus.filter(same_digits)
        """
        kept = np.array([bool(keep(*pair)) for pair in self], dtype=bool)
        filtered = self._pick(kept)
        left_out = self.line_numbers[~kept].tolist()
        filtered.report = _joined_reports(self.report, {"filter": left_out})
        return filtered

    def split(self, *sizes: int, seed: int = 0) -> tuple["ParallelCorpus", ...]:
        """Splits off random corpora: `train, test = corpus.split(300)`.

        Pairs that share a source or a target sentence are kept together, so that no
        sentence is in two corpora. Each corpus keeps the order of this one.

        Args:
            *sizes: int. Number of pairs in each corpus after the first.
            seed: int. The same seed gives the same corpora.
        Returns:
            The rest of this corpus, with its report, and one corpus per size.
        Raises:
            ValueError: if sizes are missing, below 1, leave nothing for the rest, or
                cannot be filled by complete groups of shared sentences.
        """
        sizes = [check_integer("sizes", size, 1) for size in sizes]
        seed = check_integer("seed", seed, 0)
        if not sizes or sum(sizes) >= len(self):
            raise ValueError(
                "`split` expects sizes from 1 that leave at least one pair for the "
                f"rest. Received: sizes={sizes} of {len(self)} pairs"
            )
        _, group, counts = np.unique(
            _shared_sentences(self.sources, self.targets),
            return_inverse=True,
            return_counts=True,
        )
        order = np.random.default_rng(seed).permutation(len(counts))
        split = _fill_splits(sizes, counts, order)[group]
        rest, *others = (self._pick(split == k) for k in range(len(sizes) + 1))
        rest.report = {reason: list(lines) for reason, lines in self.report.items()}
        return rest, *others

    def without(self, line_numbers: Iterable[int]) -> "ParallelCorpus":
        """This corpus without the pairs of some lines, which are not reported.

        Args:
            line_numbers: ints.
        Raises:
            ValueError: if no pairs remain.
        """
        chosen = ~np.isin(self.line_numbers, list(line_numbers))
        return self._pick(chosen)

    def id_store(self, tokenizer: TokenizerProtocol) -> IdStore:
        """The ids of every pair, for `batches`; they are kept in memory."""
        return encode_corpus(self, tokenizer)

    @property
    def digest(self) -> str:
        """SHA-256 of all sentences; equal for the same pairs in the same order."""
        digest = hashlib.sha256()
        for side in (self.sources, self.targets):
            side.add_to(digest)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.sources, self.targets, strict=True)

    def __getitem__(self, index: int | slice) -> "tuple[str, str] | ParallelCorpus":
        if isinstance(index, slice):
            return self._pick(np.arange(len(self))[index])
        try:
            return self.sources[index], self.targets[index]
        except TypeError:
            raise TypeError(
                "A corpus is indexed by an integer or a slice, such as corpus[:1000]. "
                f"Received: {index!r:.60}"
            ) from None

    def __add__(self, other: "ParallelCorpus") -> "ParallelCorpus":
        """The pairs of both corpora; lines of another text are numbered after these."""
        if not isinstance(other, ParallelCorpus):
            return NotImplemented
        origins = list(dict.fromkeys([self.origin, other.origin]))
        lines_before = self._lines_before(other)
        later = {
            reason: [line + lines_before for line in lines]
            for reason, lines in other.report.items()
        }
        return ParallelCorpus(
            self.sources + other.sources,
            self.targets + other.targets,
            [*self.line_numbers, *(other.line_numbers + lines_before)],
            _joined_reports(self.report, later),
            " and ".join(origins),
        )

    def _lines_before(self, other):
        """0 for two parts of one text, otherwise the number of lines of this one."""
        ours, theirs = self._lines(), other._lines()
        if self.origin == other.origin and ours.isdisjoint(theirs):
            return 0
        return max(ours)

    def _lines(self):
        return set(self.line_numbers.tolist()).union(*self.report.values())

    def _pick(self, chosen):
        kept = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        if not len(kept):
            raise ValueError(f"{self.origin}: no pair is left of {len(self)}.")
        sides = self.sources.pick(kept), self.targets.pick(kept)
        return ParallelCorpus(*sides, self.line_numbers[kept], origin=self.origin)

    def _leave_out_empty(self):
        full = np.array([bool(s.strip() and t.strip()) for s, t in self], dtype=bool)
        if not full.any():
            raise ValueError(
                f"{self.origin}: none of {len(self)} lines has text on both sides."
            )
        if full.all():
            return
        self.report.setdefault("empty", []).extend(self.line_numbers[~full].tolist())
        kept = np.flatnonzero(full)
        self.sources, self.targets = self.sources.pick(kept), self.targets.pick(kept)
        self.line_numbers = self.line_numbers[kept]


def _packed(pairs, origin):
    """The sources and targets of pairs, each checked before the next one is read."""
    packings = Packing(), Packing()
    for number, pair in enumerate(pairs, start=1):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"Pair {number} must be (source, target), two str. Received: "
                f"{pair!r:.60}"
            )
        absent = [text is ABSENT for text in pair]
        if any(absent):
            side = ("source", "target")[absent.index(True)]
            raise ValueError(
                f"{origin}: every source needs a target. Received: pair {number} "
                f"without a {side}"
            )
        for packing, text in zip(packings, pair, strict=True):
            packing.add(check_line(number, text))
    return [packing.lines() for packing in packings]


def _joined_reports(*reports):
    """Merges several reports; reasons without lines are dropped."""
    joined = {}
    for reason, lines in chain.from_iterable(map(dict.items, reports)):
        joined[reason] = [*joined.get(reason, []), *lines]
    return {reason: lines for reason, lines in joined.items() if lines}


def _shared_sentences(*sides):
    """For each pair, the first pair of its group of pairs that share sentences.

    The groups are found by union-find.
    """
    first = list(range(len(sides[0])))

    def root(pair):
        while first[pair] != pair:
            first[pair] = pair = first[first[pair]]
        return pair

    for side in sides:
        seen = {}
        for pair, sentence in enumerate(side):
            one, other = root(seen.setdefault(sentence, pair)), root(pair)
            first[max(one, other)] = min(one, other)
    return [root(pair) for pair in range(len(first))]


def _fill_splits(sizes, counts, order):
    """For each group, k if it is in the split of sizes[k - 1], 0 if in no split.

    The groups have `counts` pairs, and are tried in the given order.
    """
    split = np.zeros(len(counts), dtype=np.int64)
    for number, size in enumerate(sizes, start=1):
        room = size
        for group in order:
            if room and not split[group] and counts[group] <= room:
                split[group] = number
                room -= counts[group]
        if room:
            raise ValueError(
                f"`split` cannot fill a corpus of {size} pairs: only {size - room} fit "
                "while pairs that share a sentence stay together."
            )
    return split


def _numbers_and_dates(language):
    """All numbers in words, then all dates, in one language."""
    try:
        from babel.dates import format_date
        from babel.localedata import locale_identifiers
        from num2words import CONVERTER_CLASSES, num2words
    except ImportError as error:
        raise extra_missing("The numbers", "num2words and babel", "demo") from error
    # num2words 0.5.14 fails in Amharic from 1,100 on.
    known = set(CONVERTER_CLASSES) & set(locale_identifiers()) - {"am"}
    if language not in known:
        raise ValueError(
            f"`numbers` expects languages from {', '.join(sorted(known))}. "
            f"Received: {language!r}"
        )
    words = [num2words(number, lang=language) for number in NUMBERS]
    days = (FIRST_DATE + timedelta(n) for n in range((LAST_DATE - FIRST_DATE).days + 1))
    return words + [format_date(day, format="full", locale=language) for day in days]
