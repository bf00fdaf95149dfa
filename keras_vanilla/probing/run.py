"""Runs a translator on all inputs; formats the results as a table and as JSON."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from keras_vanilla.probing.inputs import COUNT, made_probes
from keras_vanilla.probing.judgement import KindResult, judged


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
