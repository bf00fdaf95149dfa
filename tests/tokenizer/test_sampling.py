import collections
import itertools
import math
import random

import pytest
import sentencepiece

from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.tokenizer.sampling import SegmentationSampler

CHANCE = random.Random(2)
SYLLABLES = ["ka", "to", "mi", "ran", "sel", "du", "pona", "list"]
WORDS = ["".join(CHANCE.choices(SYLLABLES, k=CHANCE.randint(1, 4))) for _ in range(199)]
LINES = [" ".join(CHANCE.choices(WORDS, k=7)) for _ in range(307)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, 320, user_defined_symbols=["<2fr>"])


def processor(tokenizer):
    return sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)


def best(tokenizer, lines):
    return [ids[:-1] for ids in tokenizer.encode(lines)]


def test_sampling_keeps_text_and_bytes(tokenizer):
    lines = [*LINES, "<2fr> kato mi", "du<2fr>ka ж!", ""]
    sampler, _ = tokenizer.samplers(0.3)
    chance = random.Random(5)
    peer = processor(tokenizer)
    changed = 0
    for ids in best(tokenizer, lines):
        sampled = sampler(ids, chance)
        assert peer.decode(sampled) == peer.decode(ids)
        kept = [id_ for id_ in ids if id_ < 261]  # bytes, and the symbol
        assert [id_ for id_ in sampled if id_ < 261] == kept
        changed += sampled != ids
    assert changed > 100


def test_sampling_depends_on_random_numbers(tokenizer):
    (ids,) = best(tokenizer, LINES[:1])
    one, other = (
        [sampler(ids, chance) for _ in range(9)]
        for sampler, chance in (
            (tokenizer.samplers(0.3)[0], random.Random(5)),
            (SegmentationSampler(tokenizer.source_model, 0.3, 320), random.Random(5)),
        )
    )
    assert one == other and len(set(map(tuple, one))) > 1


def test_high_alpha_gives_the_best_segmentation(tokenizer):
    sampler, chance = tokenizer.samplers(500.0)[0], random.Random(1)
    for ids in best(tokenizer, LINES):
        assert sampler(ids, chance) == ids


def segmentations(peer, word):
    """Every way to cut a word into pieces, each a tuple of ids."""
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(word)]
        pieces = [word[a:b] for a, b in itertools.pairwise(places)]
        ids = tuple(map(peer.piece_to_id, pieces))
        if peer.unk_id() not in ids:
            yield ids


def test_probabilities_are_those_of_the_formula(tokenizer):
    peer, alpha, count = processor(tokenizer), 0.2, 6_000
    word = max(WORDS, key=lambda word: len(best(tokenizer, [word])[0]) == 2)
    (ids,) = best(tokenizer, [word])
    weights = {
        each: math.exp(alpha * sum(map(peer.get_score, each)))
        for each in segmentations(peer, f"▁{word}")
    }
    assert len(weights) > 5
    sampler, chance = tokenizer.samplers(alpha)[0], random.Random(3)
    counts = collections.Counter(tuple(sampler(ids, chance)) for _ in range(count))
    assert set(counts) <= set(weights)
    total = sum(weights.values())
    for each, weight in weights.items():
        expected = weight / total
        deviation = math.sqrt(expected * (1 - expected) / count)
        assert abs(counts[each] / count - expected) < 5 * deviation + 1e-9
