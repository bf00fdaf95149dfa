"""What became of the inputs: copied, looping, too long, or another translation."""

import dataclasses
import re
import statistics
from collections.abc import Sequence

from keras_vanilla.probing.inputs import Probe
from keras_vanilla.translation.evaluation import bleu_and_chrf

TIMES = 4  # in a row: twice is a stutter that languages know, four times is a loop
# Any 2 to 40 characters that are not white space alone, again and again.
REPEATED = re.compile(rf"(\S.{{1,39}}?)\1{{{TIMES - 1},}}", re.DOTALL)
MOST_GROWTH = 3.0  # characters of a translation for each of the source's
SHORT = 20  # characters, of which any translation may have so many more


@dataclasses.dataclass(frozen=True, kw_only=True)
class KindResult:
    """What became of the inputs of one kind.

    Attributes:
        kind: str.
        lines: int.
        kept: float or None. Share of the things to copy that were; None where there was
            nothing to copy.
        loops: int. Translations that repeat something `TIMES` times in a row that the
            source does not.
        too_long: int. Translations of over `MOST_GROWTH` times their sources' length.
        growth: float. Median length of a translation, divided by its source's.
        bleu: float or None. BLEU with the translations of the clean texts as
            references; None where there is no noise.
        failures: list of (text, translation) that were not copied, loop or are too
            long.
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
    """The result of each kind, in the order of the probes.

    Args:
        probes: list of Probe.
        translations: list of str, one for each.
        clean: dict of the translation of each clean text.
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
    """Whether a translation repeats something in a row that its source does not.

    Args:
        source: str.
        translation: str.
    """
    return _repeats(translation) and not _repeats(source)


def _repeats(text):
    """Whether anything with a letter or digit in it occurs four times in a row."""
    return any(re.search(r"\w", found[1]) for found in REPEATED.finditer(text + " "))


def _is_too_long(source, translation):
    return len(translation.strip()) > MOST_GROWTH * len(source.strip()) + SHORT
