"""The settings of a search, checked on creation."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keras_vanilla._checks import (
    check_choice,
    check_integer,
    check_number,
    refuse_unknown,
)
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.loops import LoopGuard

CHOICES = {
    "length_normalization": ("gnmt", "power"),
    "early_stopping": (None, False, True, "never"),
    "no_loops": (False, True),
}
MOST_BEAMS = 1000  # each beam has a cache, and V candidates at every step


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """Settings of a search, and the scoring of hypotheses of different lengths.

    Every search accepts a config, or its fields as keywords:
    `greedy_search(model, source_ids, max_length=20)` and
    `translator.translate(texts, beam_size=4)`, see `of`.

    Args:
        beam_size: int, at most 1000. Hypotheses kept per row (K); 1 is greedy search.
        length_penalty: float, at least 0. The exponent of the length normalization.
        max_length: int or None. Longest output in tokens, including the end. None means
            the length of the row's source without padding plus 50, or the length of its
            prefix if that is longer; never more than the model's `max_length`.
        n_best: int or None. Hypotheses returned per row, with scores. None returns only
            the best one; from `beam_search` itself, all.
        length_normalization: "gnmt" or "power", see `apply_length_penalty`.
        no_repeat_ngram_size: int or None. No sequence of this many tokens occurs twice
            in a hypothesis, except where its prefix repeats one.
        early_stopping: None, bool or "never". None: finished hypotheses of beam search
            keep their beam. Otherwise they leave it, and the search ends as in Hugging
            Face's `generate` with this value, see `refilled_beam.refill`.
        no_loops: bool or LoopGuard. No hypothesis repeats up to 16 tokens more than
            three times in a row, except numbers, its prefix, required terms, and what
            its source repeats as often; outputs without loops do not change. A
            Translator or an export replaces True by the LoopGuard of its vocabulary.
    Raises:
        ValueError: if `beam_size`, `max_length`, `n_best` or `no_repeat_ngram_size` is
            not an integer of at least 1, `beam_size` is above 1000, `max_length` is
            above 2**31 - 1, `n_best` is above `beam_size`, `length_penalty` is negative
            or not finite, another field is none of its choices, or `early_stopping` is
            given without beams.
    Example:
        DecodingConfig(beam_size=4, length_penalty=0.6)
    """

    beam_size: int = 1
    length_penalty: float = 0.6
    max_length: int | None = None
    n_best: int | None = None
    length_normalization: str = "gnmt"
    no_repeat_ngram_size: int | None = None
    early_stopping: bool | str | None = None
    no_loops: bool | LoopGuard = False

    @classmethod
    def of(
        cls, config: "DecodingConfig | None" = None, **settings: Any
    ) -> "DecodingConfig":
        """A config with some fields replaced.

        Args:
            config: DecodingConfig, or None for the default one.
            settings: fields of the config.
        Raises:
            TypeError: if `config` has another type, or a setting is not a field.
            ValueError: same as the constructor.
        """
        if not isinstance(config, cls | None):
            raise TypeError(
                "`config` must be a DecodingConfig; its fields are given by name, such "
                f"as beam_size=4. Received: {config!r:.60}"
            )
        refuse_unknown("A search", settings, SEARCH_OPTIONS)
        return dataclasses.replace(config or cls(), **settings)

    def __post_init__(self):
        def keep(name, value):  # converts NumPy's numbers to Python's
            object.__setattr__(self, name, value)

        beam_size = check_integer("beam_size", self.beam_size, 1, MOST_BEAMS)
        keep("beam_size", beam_size)
        keep("length_penalty", check_number("length_penalty", self.length_penalty, 0.0))
        for name in ("max_length", "no_repeat_ngram_size", "n_best"):
            value = getattr(self, name)
            if value is not None:
                keep(name, check_integer(name, value, 1))
        if self.n_best is not None and self.n_best > beam_size:
            raise ValueError(
                f"`n_best` must be at most `beam_size`, {beam_size}. "
                f"Received: {self.n_best}"
            )
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, LoopGuard):
                keep(name, choices[choices.index(check_choice(name, value, choices))])
        if self.early_stopping is not None and self.is_greedy:
            raise ValueError(
                "`early_stopping` is for beam search. Received: early_stopping="
                f"{self.early_stopping!r} and beam_size=1"
            )

    @property
    def is_greedy(self) -> bool:
        """True if greedy search is enough: one beam and no `n_best`."""
        return self.beam_size == 1 and self.n_best is None

    @property
    def loop_guard(self) -> LoopGuard | None:
        """The rule of loops; None without one."""
        guard = self.no_loops
        return LoopGuard() if guard is True else guard or None

    def of_vocabulary(self, guard: Callable[[], LoopGuard]) -> "DecodingConfig":
        """The same config with the LoopGuard of a vocabulary in place of True.

        Args:
            guard: function that returns it; it is only called if it is needed.
        """
        return self.of(self, no_loops=guard()) if self.no_loops is True else self

    def apply_length_penalty(self, log_probs: Tensor, lengths: Tensor) -> Tensor:
        """Scores: log-probabilities divided by the length normalization.

            log P / ((5 + n) / 6)^length_penalty    "gnmt"
            log P / n^length_penalty                "power"

        Args:
            log_probs: float, array or tensor.
            lengths: float, array or tensor. n, the number of tokens with the end.
        Source: Wu et al. 2016, section 7, for "gnmt".
        """
        if self.length_normalization == "gnmt":
            lengths = (5 + lengths) / 6
        return log_probs / lengths**self.length_penalty

    def mean_log_probs(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """The mean log-probability of the tokens of an output, from its score.

        Args:
            scores: float, array or tensor. The scores of this search.
            lengths: float, array or tensor. Numbers of tokens, at least 1.
        """
        if not self.is_greedy:
            scores = scores / self.apply_length_penalty(1.0, lengths)
        return scores / lengths

    def refuse_beams(self, search: str) -> None:
        """Refuses settings for several hypotheses, for a search that keeps one.

        Args:
            search: str. Name of the search, for the error.
        Raises:
            ValueError: if `beam_size` is above 1, or `n_best` is given.
        """
        if not self.is_greedy:
            raise ValueError(
                f"`{search}` keeps one hypothesis per row, `beam_search` several. "
                f"Received: beam_size={self.beam_size} and n_best={self.n_best}"
            )


SEARCH_OPTIONS = tuple(field.name for field in dataclasses.fields(DecodingConfig))
