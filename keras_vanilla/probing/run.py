"""A translator on all inputs: what it makes of them, as a table and as JSON."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from keras_vanilla.probing.inputs import COUNT, made_probes
from keras_vanilla.probing.judgement import KindResult, judged


@dataclasses.dataclass(frozen=True)
class ProbeResult:
    """What a translator made of all inputs.

    Attributes:
        kinds: list of KindResult.
    """

    kinds: list[KindResult]

    @property
    def kept(self) -> float:
        """Share of all things to copy that were."""
        counts = [(k.kept * k.lines, k.lines) for k in self.kinds if k.kept is not None]
        return sum(kept for kept, _ in counts) / sum(lines for _, lines in counts)

    @property
    def loops(self) -> int:
        """Translations that loop."""
        return sum(kind.loops for kind in self.kinds)

    @property
    def lines(self) -> int:
        """All inputs."""
        return sum(kind.lines for kind in self.kinds)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON takes it."""
        totals = {"lines": self.lines, "kept": self.kept, "loops": self.loops}
        return totals | {"kinds": [dataclasses.asdict(kind) for kind in self.kinds]}

    def table(self) -> str:
        """A line for each kind, for a person."""
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
        translate: function from a list of str to as many translations.
        sentences: list of str in the source language.
        count: int. Inputs of each kind.
    Returns:
        ProbeResult.
    Raises:
        ValueError: as `made_probes`.
    """
    probes = made_probes(sentences, count)
    texts = list(dict.fromkeys(p.clean or p.text for p in probes))
    texts = list(dict.fromkeys([*texts, *(p.text for p in probes)]))
    translations = dict(zip(texts, translate(texts), strict=True))
    results = [translations[p.text] for p in probes]
    return ProbeResult(judged(probes, results, translations))
