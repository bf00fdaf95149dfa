"""Which pieces translate which, learnt from a language whose dictionary is known."""

import numpy as np
import pytest
import word_reversal

from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation import Shortlist
from keras_vanilla.translation.shortlist import translation_probabilities

ENGLISH = word_reversal.english_sentences(400, seed=0, lengths=range(2, 8))
DUTCH = [word_reversal.dutch(line) for line in ENGLISH]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(ENGLISH + DUTCH, vocabulary_size=320)


def test_each_word_suggests_its_translation(tokenizer):
    shortlist = Shortlist.learn(tokenizer, ENGLISH, DUTCH, size=50)
    assert shortlist.size == 50
    words, right = sorted({word for line in ENGLISH for word in line.split()}), 0
    for word in words:
        (source,), (target,) = (
            tokenizer.encode([word]),
            tokenizer.encode_target([word_reversal.dutch(word)]),
        )
        best = {int(shortlist.likely[piece, 0]) for piece in source[:-1]}
        right += bool(best & set(target[:-1]))
    assert len(words) == 20 and right / len(words) > 0.9


def test_pieces_are_in_the_order_of_their_frequency(tokenizer):
    shortlist = Shortlist.learn(tokenizer, ENGLISH, DUTCH)
    rows = tokenizer.encode_target(DUTCH)
    counts = np.zeros(tokenizer.target_vocabulary_size, int)
    for row in rows:
        for id_ in row[:-1]:
            counts[id_] += 1
    assert sorted(shortlist.frequent.tolist()) == list(range(len(counts)))
    assert (np.diff(counts[shortlist.frequent]) <= 0).all()


def test_a_piece_that_is_not_in_the_text_suggests_nothing(tokenizer):
    shortlist = Shortlist.learn(tokenizer, ENGLISH[:1], DUTCH[:1])
    (ids,) = tokenizer.encode(ENGLISH[:1])
    absent = sorted(set(range(tokenizer.vocabulary_size)) - set(ids[:-1]))
    assert (shortlist.likely[absent] == tokenizer.pad_id).all()
    assert (shortlist.likely[ids[0]] != tokenizer.pad_id).any()


def model_1(pairs, rounds):
    """p(target | source), None for what translates nothing, by the definition."""
    pairs = [([None, *source], target) for source, target in pairs]
    p = {(s, t): 1.0 for source, target in pairs for s in source for t in target}
    for _ in range(rounds):
        counts = dict.fromkeys(p, 0.0)
        for source, target in pairs:
            for t in target:
                total = sum(p[s, t] for s in source)
                for s in source:
                    counts[s, t] += p[s, t] / total
        sums = {}
        for (s, _), count in counts.items():
            sums[s] = sums.get(s, 0.0) + count
        p = {(s, t): count / sums[s] for (s, t), count in counts.items()}
    return p


def test_probabilities_are_those_of_ibm_model_1():
    random = np.random.default_rng(0)
    pairs = [
        (random.integers(0, 9, n).tolist(), random.integers(0, 7, m).tolist())
        for n, m in random.integers(1, 6, (40, 2))
    ]
    expected = model_1(pairs, rounds=3)
    source, target, p = translation_probabilities(pairs, 9, 7, rounds=3)
    received = {
        (None if s == 9 else s, t): value
        for s, t, value in zip(source.tolist(), target.tolist(), p, strict=True)
    }
    assert received.keys() == expected.keys()
    assert received == pytest.approx(expected)


@pytest.mark.parametrize("sources, targets", [([], []), (["one"], [])])
def test_texts_that_are_no_pairs_are_refused(tokenizer, sources, targets):
    with pytest.raises(ValueError, match=f"Received: {len(sources)} sources and 0"):
        Shortlist.learn(tokenizer, sources, targets)


def test_of_a_long_text_evenly_spaced_pairs_are_taken(tokenizer, monkeypatch):
    sources = ["one", "two", "three", "four"]
    targets = [word_reversal.dutch(word) for word in sources]
    links = sum(
        len(source) * (len(target) - 1)  # without the ends, and one in front
        for source, target in zip(
            tokenizer.encode(sources), tokenizer.encode_target(targets), strict=True
        )
    )
    whole = Shortlist.learn(tokenizer, sources, targets)
    monkeypatch.setattr("keras_vanilla.translation.shortlist.MOST_LINKS", links)
    np.testing.assert_array_equal(
        Shortlist.learn(tokenizer, sources, targets).likely, whole.likely
    )
    monkeypatch.setattr("keras_vanilla.translation.shortlist.MOST_LINKS", links - 1)
    np.testing.assert_array_equal(
        Shortlist.learn(tokenizer, sources, targets).likely,
        Shortlist.learn(tokenizer, sources[::2], targets[::2]).likely,
    )
