"""What searches refuse."""

import functools
import math
import types

import numpy as np
from automaton import END, START, Automaton
from models import make_model
from refusal import Refusal

from keras_vanilla.decoding import (
    AttendedSource,
    CompiledSearch,
    DecodingConfig,
    Terms,
    beam_search,
    greedy_search,
    run_search,
    sample,
)

COMPLETE = (
    "decoding/attended_source.py",
    "decoding/beam.py",
    "decoding/config.py",
    "decoding/constraints.py",
    "decoding/hypothesis_end.py",
    "decoding/sampling.py",
    "decoding/terms.py",
)
MODEL = Automaton.random(6, seed=0)
SOURCE = np.array([[5], [9]], "int32")
TERMS = Terms(np.array([[[[3, 4]]]]), np.array([[1]]), np.zeros((2, 6), bool))


def config(**settings):
    return lambda: DecodingConfig(**settings)


def search(which, source=SOURCE, model=MODEL, **settings):
    return lambda: which(model, source, **settings)


def compiled(which, source=SOURCE, **settings):
    return lambda: CompiledSearch(MODEL)(which, source, **settings)


def attended(layer):
    model = types.SimpleNamespace(num_decoder_layers=3)
    return lambda: AttendedSource(model, layer)


@functools.cache
def transformer():
    return make_model()


def wrong_ids(which, wrong):
    """Calls with an id outside the vocabulary of 19."""
    source = np.array([[5, wrong]])
    return {
        "eager": lambda: which(transformer(), source),
        "compiled": lambda: CompiledSearch(transformer())(which, source),
    }


SETTINGS = {  # a value of the config, and the values of its name that are refused
    "beam_size": (0, -1, 10**8, 2.0, 2.5, True),
    "max_length": (0, 2**31, 2.5, math.nan),
    "no_repeat_ngram_size": (0, -1, 1.5, True),
    "length_penalty": (-1, -0.1, math.nan, math.inf, "0.6"),
    "length_normalization": ("wu",),
    "early_stopping": ("always", 2),
    "no_loops": ("yes",),
    "n_best": (0, 2),
}
PREFIXES = {
    "above the vocabulary": ([[3, 6], [4, 0]], "size, 6. Received: 6"),
    "below 0": ([[3, 4], [-1, 0]], "at least 0 .*: -1"),
    "end": ([[3, END], [4, 0]], "without an end. Received: row 0"),
    "start": ([[START, 3], [4, 0]], "without the start. Received: row 0"),
    "pad first": ([[0, 3], [4, 0]], "row 0, .0, 3."),
    "one row": ([[3, 4]], r"2 rows .*: shape \(1, 2\)"),
    "too long": ([[3] * 9, [4] * 9], "at most 8 columns.* 9"),
    "ragged": ([[3, 4], [4]], r"\(B, P\).*Received: .*\[4\]"),
    "one axis": ([3, 4], r"\(B, P\).*Received: \[3, 4\]"),
    "floats": ([[3.0], [4.0]], r"\(B, P\).*3.0"),
    "text": ("Guten", r"\(B, P\).*'Guten'"),
}
SAMPLING = {
    "temperature": (0, -1.0, math.nan, math.inf),
    "top_k": (0, 2.0),
    "top_p": (0.0, 1.1, math.nan),
    "seed": (-1, 2**31, "1"),
}
SEARCHES = {"greedy": greedy_search, "beam": beam_search, "sample": sample}


class Forbidding(Automaton):
    forbidden_ids = (4,)


FORBIDDING = Forbidding(*MODEL.truth)

ROWS = [
    *(
        Refusal(f"{name} {value}", config(**{name: value}), f"`{name}`.*{value}")
        for name, values in SETTINGS.items()
        for value in values
    ),
    Refusal(
        "slip", config(length_normalization="gnnt"), "`length_normalization`.*'gnnt'"
    ),
    Refusal("more than beams", config(beam_size=2, n_best=3), "`n_best`.*2.*: 3"),
    Refusal("early greedy", config(early_stopping=False), "`early_stopping`.*False"),
    Refusal("not a config", lambda: DecodingConfig.of(4), "`config`.*: 4", TypeError),
    Refusal(
        "config by position", lambda: beam_search(MODEL, SOURCE, 4), ": 4", TypeError
    ),
    Refusal("unknown", search(beam_search, beam_sise=4), "'beam_sise'", TypeError),
    *(
        Refusal(f"{name} of {which.__name__}", search(which, **{name: 2}), f"{name}=2")
        for which in (greedy_search, sample)
        for name in ("beam_size",)
    ),
    *(
        Refusal(f"{name}: {row[0]}", call(which, **row[1]), row[2])
        for name, which in SEARCHES.items()
        for call in (search, compiled)
        for row in [
            ("length", {"max_length": 98}, "`max_length`.*97. Received: 98"),
            ("n-grams", {"no_repeat_ngram_size": 98}, "`no_repeat_ngram_size`.*98"),
            ("shape", {"source": np.zeros((0, 5), "int32")}, r"\(0, 5\)"),
            ("columns", {"source": np.zeros((3, 0), "int32")}, r"\(3, 0\)"),
            ("axes", {"source": np.zeros(4, "int32")}, r"\(4,\)"),
            ("three axes", {"source": np.zeros((2, 3, 4), "int32")}, r"\(2, 3, 4\)"),
        ]
    ),
    *(
        Refusal(
            f"prefix of {name}: {what}",
            call(which, max_length=8, target_prefix=prefix),
            pattern,
        )
        for name, which in SEARCHES.items()
        for call in ((search, compiled) if name == "greedy" else (search,))
        for what, (prefix, pattern) in PREFIXES.items()
    ),
    *(
        Refusal(
            f"forbidden prefix of {name}",
            search(which, model=FORBIDDING, target_prefix=[[3, 4], [3, 0]]),
            r"`target_prefix`.*`forbidden_ids`, \[4\].*row 0, \[3, 4\]",
        )
        for name, which in SEARCHES.items()
    ),
    Refusal(
        "forbidden prefix, compiled",
        lambda: CompiledSearch(FORBIDDING)(
            greedy_search, SOURCE, target_prefix=[[3, 5], [4, 0]]
        ),
        r"`forbidden_ids`, \[4\].*row 1, \[4, 0\]",
    ),
    *(
        Refusal(
            f"{name} {value}", search(sample, **{name: value}), f"`{name}`.*{value}"
        )
        for name, values in SAMPLING.items()
        for value in values
    ),
    Refusal(
        "seed of greedy search", compiled(greedy_search, seed=1), "seed", TypeError
    ),
    Refusal("terms of samples", search(sample, terms=TERMS), "'terms'", TypeError),
    Refusal(
        "terms of one axis",
        search(greedy_search, terms=TERMS._replace(ids=np.array([[3, 4]]))),
        r"\(B, J, A, P\).*shapes \(1, 2\)",
    ),
    Refusal(
        "terms of other places",
        search(greedy_search, terms=TERMS._replace(places=np.zeros((1, 9, 3), bool))),
        r"places \(B, J, S\).*\(1, 9, 3\)",
    ),
    Refusal("terms of one row", search(beam_search, terms=TERMS), "2 rows.*: 1 rows"),
    Refusal("compiled", compiled(greedy_search, terms=TERMS), "2 rows.*: 1 rows"),
    Refusal(
        "terms of another vocabulary",
        search(
            greedy_search, SOURCE[:1], terms=TERMS._replace(inside=np.zeros((2, 9)))
        ),
        "9 tokens.*6",
    ),
    Refusal(
        "prefix by position",
        lambda: run_search(MODEL, SOURCE, DecodingConfig(), SOURCE),
        "run_search.. takes 3 positional",
        TypeError,
    ),
    Refusal(
        "terms in a refilled beam",
        search(beam_search, SOURCE[:1], terms=TERMS, early_stopping=False),
        "`terms`.*early_stopping=False",
    ),
    *(
        Refusal(f"layer {layer}", attended(layer), f"`layer`.*3 .*: {layer}")
        for layer in (-1, 3)
    ),
    *(
        Refusal(f"{name}: id {wrong}, {how}", call, f"source id .* 19. .*: {wrong}")
        for name, which in SEARCHES.items()
        for wrong in (19, -1, 5.5, math.nan)
        for how, call in wrong_ids(which, wrong).items()
    ),
]
