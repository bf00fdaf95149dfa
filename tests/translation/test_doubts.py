"""What speaks against a translation, by the texts and by the model."""

import filecmp
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from pieces_in_text import known_share
from teacher_forcing import log_probabilities

from keras_vanilla.translation import doubts as module
from keras_vanilla.translation.batch_translation import warn_doubtful
from keras_vanilla.translation.doubts import doubts_of

TABLE = Path(__file__).parents[1] / "support" / "doubts.tsv"
ROWS = TABLE.read_text(encoding="utf-8").splitlines()[1:]
CALLER = Path(__file__).parents[2] / "export" / "python" / "doubts.py"


@pytest.mark.parametrize("row", ROWS)
def test_texts_tell_what_is_missing_or_unchanged(row):
    source, translation, expected = row.split("\t")
    assert doubts_of(source, translation) == expected.split()


@pytest.mark.parametrize(
    "probability, known, expected",
    [
        (0.59, 0.51, ["unlikely"]),
        (0.61, 0.49, ["unknown"]),
        (0.0, 0.0, ["unlikely", "unknown"]),
        (1.0, 1.0, []),
        (None, None, []),
    ],
)
def test_low_shares_are_doubts(probability, known, expected):
    assert doubts_of("a", "b", probability, known) == expected


def test_caller_for_python_has_same_rules():
    assert filecmp.cmp(module.__file__, CALLER, shallow=False)


@pytest.mark.parametrize("search", [{}, {"beam_size": 3, "n_best": 2}])
def test_hypotheses_have_doubts_of_their_probability(trained_translator, search):
    texts = ["one two", "", "three one two two", "Привет one", "один 9", "two “ one"]
    peer = trained_translator.tokenizer._source
    model, encode = trained_translator.model, trained_translator.tokenizer.encode
    stream = trained_translator.stream(texts, **search)
    for text, hypotheses in zip(texts, stream, strict=True):
        for each in hypotheses:
            if not text:
                assert each.doubts == ()
                continue
            (source,) = encode([text])
            log_probs = log_probabilities(model, source, np.array(each.ids))
            probability = math.exp(log_probs.mean())
            assert abs(probability - module.LEAST_PROBABILITY) > 1e-4  # of rounding
            known = known_share(peer, text)
            expected = doubts_of(text, each.text, probability, known)
            assert each.doubts == expected


def test_text_in_sentences_has_doubts_of_all(trained_translator):
    text = "One two. Привет. Take 99."
    (hypotheses,) = trained_translator.stream([text], on_too_long="split")
    assert {"unknown", "missing"} <= {*hypotheses[0].doubts}


def test_doubtful_translations_are_counted_in_warning():
    with pytest.warns(UserWarning, match="2 of 3 .*2 missing, 1 unlikely.*texts 1, 3"):
        warn_doubtful([["missing"], [], ["unlikely", "missing"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_doubtful([[], []])
