"""Translates the inputs, and classifies the outputs: copied, looping, too long."""

import dataclasses
import re
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from keras_vanilla.probing.inputs import COUNT, Probe, made_probes
from keras_vanilla.translation.evaluation import bleu_and_chrf

TIMES = 4  # in a row; repeating a word twice is normal, four times is a loop
# Any 2 to 40 characters, not only white space, repeated in a row.
REPEATED = re.compile(rf"(\S.{{1,39}}?)\1{{{TIMES - 1},}}", re.DOTALL)
MOST_GROWTH = 3.0  # characters of a translation per character of the source
SHORT = 20  # additional characters that any translation may have


@dataclasses.dataclass(frozen=True, kw_only=True)
class KindResult:
    """The results for one kind of inputs.

    Attributes:
        kind: str.
        lines: int. Number of inputs.
        kept: float or None. Share of the things to copy that were copied; None if there
            was nothing to copy.
        loops: int. Number of translations that repeat something `TIMES` times in a row,
            unless the source repeats it.
        too_long: int. Number of translations longer than `MOST_GROWTH` times the
            source.
        growth: float. Median length of a translation, divided by that of its source.
        bleu: float or None. BLEU with the translations of the clean texts as
            references; None for inputs without noise.
        failures: list of (text, translation) with something not copied, a loop or an
            output that is too long.
    """

    kind: str
    lines: int
    kept: float | None
    loops: int
    too_long: int
    growth: float
    bleu: float | None
    failures: list[tuple[str, str]]


def judged(
    probes: Sequence[Probe], translations: Sequence[str], clean: dict[str, str]
) -> list[KindResult]:
    """Returns the result for each kind, in the order of the probes.

    Args:
        probes: list of Probe.
        translations: list of str, one per probe.
        clean: dict of clean text -> translation.
    """
    kinds = {}
    for pair in zip(probes, translations, strict=True):
        kinds.setdefault(pair[0].kind, []).append(pair)
    return [_of_kind(kind, pairs, clean) for kind, pairs in kinds.items()]


def _of_kind(kind, pairs, clean):
    copied = [p.kept in translation for p, translation in pairs if p.kept is not None]
    noisy = [(translation, clean[p.clean]) for p, translation in pairs if p.clean]
    return KindResult(
        kind=kind,
        lines=len(pairs),
        kept=sum(copied) / len(copied) if copied else None,
        loops=sum(loops(p.text, translation) for p, translation in pairs),
        too_long=sum(_is_too_long(p.text, translation) for p, translation in pairs),
        growth=statistics.median(len(t) / max(1, len(p.text)) for p, t in pairs),
        bleu=bleu_and_chrf(*zip(*noisy, strict=True)).bleu if noisy else None,
        failures=[(p.text, t) for p, t in pairs if _fails(p, t)],
    )


def _fails(probe, translation):
    lost = probe.kept is not None and probe.kept not in translation
    return (
        lost or loops(probe.text, translation) or _is_too_long(probe.text, translation)
    )


def loops(source: str, translation: str) -> bool:
    """Returns True if a translation has a loop that its source does not have.

    Args:
        source: str.
        translation: str.
    """
    return _repeats(translation) and not _repeats(source)


def _repeats(text):
    """Returns True if any text with a letter or digit occurs four times in a row."""
    return any(re.search(r"\w", match[1]) for match in REPEATED.finditer(text + " "))


def _is_too_long(source, translation):
    return len(translation.strip()) > MOST_GROWTH * len(source.strip()) + SHORT


@dataclasses.dataclass(frozen=True)
class ProbeResult:
    """The results of a translator on all inputs.

    Attributes:
        kinds: list of KindResult.
    """

    kinds: list[KindResult]

    @property
    def kept(self) -> float:
        """Share of all things to copy that were copied."""
        counts = [(k.kept * k.lines, k.lines) for k in self.kinds if k.kept is not None]
        return sum(kept for kept, _ in counts) / sum(lines for _, lines in counts)

    @property
    def loops(self) -> int:
        """Number of translations with loops."""
        return sum(kind.loops for kind in self.kinds)

    @property
    def lines(self) -> int:
        """Number of inputs."""
        return sum(kind.lines for kind in self.kinds)

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as a dict for JSON."""
        totals = {"lines": self.lines, "kept": self.kept, "loops": self.loops}
        return totals | {"kinds": [dataclasses.asdict(kind) for kind in self.kinds]}

    def table(self) -> str:
        """Returns a readable table with one line per kind."""
        names = "kind", "lines", "copied", "loops", "too long", "length", "BLEU"
        rows = [[names[0].ljust(16), *(name.rjust(9) for name in names[1:])]]
        for kind in self.kinds:
            cells = [
                f"{kind.lines}",
                "" if kind.kept is None else f"{kind.kept:.0%}",
                f"{kind.loops}",
                f"{kind.too_long}",
                f"{kind.growth:.2f}",
                "" if kind.bleu is None else f"{kind.bleu:.1f}",
            ]
            rows.append([kind.kind.ljust(16), *(cell.rjust(9) for cell in cells)])
        total = f"copied {self.kept:.1%}, loops {self.loops} of {self.lines:,}"
        return "\n".join([*map("".join, rows), total])


def probe(
    translate: Callable[[list[str]], list[str]],
    sentences: Sequence[str],
    count: int = COUNT,
) -> ProbeResult:
    """Probes a translator.

    Args:
        translate: function that maps a list of str to their translations.
        sentences: list of str in the source language.
        count: int. Number of inputs per kind.
    Returns:
        ProbeResult.
    Raises:
        ValueError: as in `made_probes`.
    """
    probes = made_probes(sentences, count)
    texts = list(dict.fromkeys(p.clean or p.text for p in probes))
    texts = list(dict.fromkeys([*texts, *(p.text for p in probes)]))
    translations = dict(zip(texts, translate(texts), strict=True))
    results = [translations[p.text] for p in probes]
    return ProbeResult(judged(probes, results, translations))
