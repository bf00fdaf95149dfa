"""Beam search from its definition, in plain Python, and the ways to get it wrong.

A hypothesis is (sum of log-probabilities, tokens). `log_probs` maps the tokens said so
far to the log-probabilities of the next one.
"""

import numpy as np
from automaton import END, PAD
from checks import array

NEAR_TIE = 1e-4


def gnmt(exponent):
    return lambda log_prob, n: log_prob / ((5 + n) / 6) ** exponent


def power(exponent):
    return lambda log_prob, n: log_prob / n**exponent


def best(hypotheses, count):
    return sorted(hypotheses, reverse=True)[:count]


def ends(hypothesis):
    return hypothesis[1][-1] == END


def continuations(live, log_probs):
    return [
        (log_prob + float(added), (*said, token))
        for log_prob, said in live
        for token, added in enumerate(log_probs(said))
        if added > -np.inf
    ]


def everything(log_probs, limit, score):
    """Every hypothesis there is, with its score: {tokens: score}."""
    live, ended = [(0.0, ())], []
    for _ in range(limit):
        longer = continuations(live, log_probs)
        ended += [one for one in longer if ends(one)]
        live = [one for one in longer if not ends(one)]
    return {said: score(log_prob, len(said)) for log_prob, said in ended + live}


def places_kept(ended, longer, beam_size):
    """What ended keeps its place; the best continuations fill the others."""
    chosen = best(longer, beam_size - len(ended))
    return (
        ended + [one for one in chosen if ends(one)],
        [one for one in chosen if not ends(one)],
    )


def never(ended, live, limit, score, n_best):
    return False


def beam(log_probs, limit, beam_size, score, n_best=None, keep=places_kept, stop=never):
    """The `n_best` hypotheses that a beam finds: [(score, tokens)], best first.

    Args:
        keep: which hypotheses stay after a step.
        stop: whether the search ends before every hypothesis has.
    """
    live, ended = [(0.0, ())], []
    n_best = n_best or beam_size
    for _ in range(limit):
        ended, live = keep(ended, continuations(live, log_probs), beam_size)
        if stop(ended, live, limit, score, n_best):
            live = []
    scored = [(score(log_prob, len(said)), said) for log_prob, said in ended + live]
    return best(scored, n_best)


def margin(log_probs, limit, beam_size, score):
    """The smallest difference that decides anything in the search `beam` describes."""
    gaps = [np.inf]

    def watched(ended, longer, size):
        free = size - len(ended)
        ranked = [log_prob for log_prob, _ in best(longer, free + 1)]
        if 0 < free < len(ranked):
            gaps.append(ranked[-2] - ranked[-1])
        return places_kept(ended, longer, size)

    found = beam(log_probs, limit, beam_size, score, keep=watched)
    gaps.extend(-np.diff([value for value, _ in found]))
    return min(gaps)


def clear_sources(model, limit, beam_size, score, count):
    """One-token sources of rows in which no choice is nearly a tie."""
    sources = [
        source
        for source in range(1, model.states)
        if margin(model.next_log_probs(source), limit, beam_size, score) > NEAR_TIE
    ]
    assert len(sources) >= count
    return sources[:count]


def told(said, length):
    """One hypothesis as a search returns it."""
    return [*said, *[PAD] * (length - len(said))]


def assert_found(found, expected):
    """`found`, ids and scores of a batch, is `expected`: [(score, tokens)] of each row.

    Where there are more places than hypotheses, the others are pads that score -inf.
    """
    ids, scores = (np.asarray(array(values, "float64")) for values in found)
    assert len(ids) == len(scores) == len(expected)
    for row, row_scores, hypotheses in zip(ids, scores, expected, strict=True):
        missing = len(row) - len(hypotheses)
        said = [(score, told(tokens, row.shape[1])) for score, tokens in hypotheses]
        said += missing * [(-np.inf, told((), row.shape[1]))]
        np.testing.assert_allclose(row_scores, [score for score, _ in said], rtol=1e-5)
        np.testing.assert_array_equal(row, [tokens for _, tokens in said])


# What a hypothesis must begin with, and may not repeat


def repeats_ngram(said, size):
    """Whether the last `size` tokens stand somewhere before, as they are."""
    ngrams = [said[i : i + size] for i in range(len(said) - size + 1)]
    return bool(ngrams) and ngrams[-1] in ngrams[:-1]


def constrained(log_probs, prefix=(), ngram_size=None, repeats=repeats_ngram):
    """The log-probabilities, -inf for what may not follow."""

    def allowed(said):
        every = np.asarray(log_probs(said))
        if len(said) < len(prefix):
            possible = [token == prefix[len(said)] for token in range(len(every))]
        else:
            longer = [(*said, token) for token in range(len(every))]
            possible = [not (ngram_size and repeats(one, ngram_size)) for one in longer]
        return np.where(possible, every, -np.inf)

    return allowed


# A mistake


def stop_by_the_length_so_far(ended, live, limit, score, n_best):
    """Takes for the most a beam can reach what it would score if it ended now."""
    scores = [score(log_prob, len(said)) for log_prob, said in ended]
    reachable = max((score(p, len(said)) for p, said in live), default=-np.inf)
    return len(scores) >= n_best and sorted(scores)[-n_best] >= reachable
