"""Terms that outputs must contain: against enumeration, and kept by every beam size."""

import itertools

import beam_reference as reference
import numpy as np
import pytest
from automaton import END, Automaton
from beam_reference import assert_found, gnmt
from checks import array
from models import ids, make_model
from teacher_forcing import forced_inputs, log_probabilities
from word_reversal import padded

from keras_vanilla.decoding import (
    DecodingConfig,
    Terms,
    beam_search,
    greedy_search,
    run_search,
)
from keras_vanilla.decoding.terms import MISPLACED

LIMIT, EXPONENT = 4, 1.5
SCORE = gnmt(EXPONENT)
NO_WORDS = np.zeros((2, 5), bool)
# Token 4 continues a word, and words may end with 3 and 4.
WORDS = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], bool)


def as_terms(rows, inside=NO_WORDS):
    """Terms of one dict {forms: how often} for each row."""
    longest = max(len(form) for row in rows for forms in row for form in forms)
    forms = max(len(forms) for row in rows for forms in row)
    tokens = np.full((len(rows), max(map(len, rows)), forms, longest), -1)
    needed = np.zeros(tokens.shape[:2], int)
    for b, row in enumerate(rows):
        for j, (term, times) in enumerate(row.items()):
            needed[b, j] = times
            for a, form in enumerate(term):
                tokens[b, j, a, : len(form)] = form
    return Terms(tokens, needed, inside)


def once(*terms):
    """Each term with one form, needed once."""
    return {(term,): 1 for term in terms}


def occurrences(said, forms, inside=NO_WORDS):
    """How often a term occurs, by its definition."""
    ends, begins = inside

    def in_word(i):
        """Whether a word reaches over the place before token i."""
        return 0 < i < len(said) and ends[said[i - 1]] and begins[said[i]]

    places = set()
    for form in forms:
        for end in range(len(form), len(said) + 1):
            start = end - len(form)
            if tuple(said[start:end]) == form and not (in_word(start) or in_word(end)):
                places.add(end)
    return len(places)


def has_all(said, row, inside=NO_WORDS):
    return all(occurrences(said, forms, inside) >= n for forms, n in row.items())


ROWS = {
    "one term": once((3, 4)),
    "one token": once((3,)),
    "a term twice": {((3,),): 2},
    "two terms": once((3,), (4, 4)),
    "overlapping terms": once((3, 4), (4, 1)),
    "a shared prefix": once((3, 4), (3, 1)),
    "a prefix of another": once((3,), (3, 4)),
    "a term inside itself": {((3, 3),): 2},
    "two forms": {((3, 4), (1, 1)): 1},
    "no term": {},
}


@pytest.mark.parametrize("inside", [NO_WORDS, WORDS], ids=["tokens", "words"])
def test_wide_beam_finds_everything_with_the_terms(inside):
    model, rows = Automaton.random(5, seed=1, max_length=LIMIT), list(ROWS.values())
    sources = np.arange(1, len(rows) + 1)[:, None]
    truth = []
    for source, row in zip(sources, rows, strict=True):
        every = reference.everything(model.next_log_probs(source), LIMIT, SCORE)
        kept = [(score, said) for said, score in every.items()]
        kept = [one for one in kept if has_all(one[1], row, inside)]
        assert row == {} or 0 < len(kept) < len(every)
        truth.append(sorted(kept, reverse=True))
    found = beam_search(
        model,
        sources,
        beam_size=max(map(len, truth)),
        length_penalty=EXPONENT,
        terms=as_terms(rows, inside),
    )
    assert_found(found, truth)


def random_case(rows, length):
    """A model, sources, and terms whose first tokens begin words."""
    draw = np.random.default_rng(5)
    model = Automaton.random(6, seed=3, max_length=length)
    inside = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]], bool)
    cases = []
    for _ in range(rows):
        terms = {}
        for _ in range(draw.integers(0, 4)):
            rest = draw.integers(3, 6, size=draw.integers(0, 3))
            terms[((int(draw.integers(3, 5)), *rest.tolist()),)] = 1
        cases.append(terms)
    return model, np.arange(1, rows + 1)[:, None], cases, inside


@pytest.mark.parametrize("beam_size", [1, 3, pytest.param(12, marks=pytest.mark.full)])
def test_every_output_has_its_terms(beam_size):
    """With fewer beams than banks, as many, and more."""
    model, sources, rows, inside = random_case(60, length=11)
    config = DecodingConfig(beam_size=beam_size)
    found = run_search(model, sources, config, terms=as_terms(rows, inside))
    for said, row in zip(array(found, "int32").tolist(), rows, strict=True):
        said = said[: said.index(END)] if END in said else said
        assert has_all(said, row, inside), (said, row)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_rows_without_terms_do_not_change(beam_size):
    model, sources, rows, inside = random_case(60, length=11)
    config = DecodingConfig(beam_size=beam_size, n_best=beam_size)
    settings = {"config": config, "return_scores": True}
    found = run_search(model, sources, **settings, terms=as_terms(rows, inside))
    plain = run_search(model, sources, **settings)
    free = np.array([not row for row in rows])
    assert 5 < free.sum() < 55
    for ours, theirs in zip(found, plain, strict=True):
        np.testing.assert_array_equal(array(ours)[free], array(theirs)[free])
        assert (array(ours)[~free] != array(theirs)[~free]).any()


def test_term_begins_where_model_nearly_chooses_it():
    """Not at once, although greedy search might never come back to it."""
    likely = [-9.0, -9.0, 0.0, 5.0, -9.0]
    logits = np.array([likely, [-9.0, -9.0, 0.0, 5.0, 2.0], likely])
    transitions = np.array([[1] * 5, [2] * 5, [2] * 5])
    model = Automaton(logits, transitions, max_length=9)
    terms = as_terms([once((4,))])
    said = greedy_search(model, [[3]], terms=terms)  # begins in state 0
    assert array(said, "int32")[0, :3].tolist() == [3, 4, 3]


def test_missing_terms_come_before_the_end():
    logits = np.array([[-30.0, -30.0, 9.0, 5.0, -30.0]])
    model = Automaton(logits, np.zeros((1, 5), int), max_length=9)
    said = greedy_search(model, [[1]], terms=as_terms([once((4, 4, 1))]))
    assert array(said, "int32")[0].tolist() == [4, 4, 1, END, 0, 0, 0, 0, 0]


def test_terms_without_room_are_said_as_far_as_possible():
    model = Automaton.random(5, seed=1, max_length=3)
    said = greedy_search(model, [[7]], terms=as_terms([once((3, 4, 3, 4))]))
    assert array(said, "int32")[0].tolist() == [3, 4, 3]


def test_prefix_and_terms_go_together():
    """Terms within the prefix count."""
    model = Automaton.random(5, seed=1, max_length=9)
    rows = [once((3, 4), (1, 1)), once((3,), (4, 4)), {}]
    prefixes = [(3, 3), (4, 3), (4,)]
    config = DecodingConfig(beam_size=3)
    given = {"target_prefix": padded(prefixes), "terms": as_terms(rows)}
    found = run_search(model, [[7], [11], [3]], config, **given)
    for said, row, prefix in zip(
        array(found, "int32").tolist(), rows, prefixes, strict=True
    ):
        assert tuple(said[: len(prefix)]) == prefix
        assert has_all(said, row)


@pytest.mark.parametrize("row", [{((3, 4),): 5}, once((3, 3, 3, 3, 3))], ids=str)
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_terms_may_be_repeated(row, search):
    model = Automaton.random(5, seed=1, max_length=12)
    settings = {"no_repeat_ngram_size": 1, "no_loops": True}
    said = search(model, [[7]], terms=as_terms([row]), **settings)
    said = array(said if search is greedy_search else said[0][:, 0], "int32")
    assert has_all(said[0].tolist(), row)


@pytest.mark.parametrize("term", [(4,), (4, 5)], ids=str)
def test_term_is_dear_where_its_source_is_not_read(term):
    """Against all outputs, with the weights of the whole model."""
    sizes = {"target_vocabulary_size": 6, "share_embeddings": False}
    sizes["forbidden_ids"] = [0, 2]
    model = make_model(seed=5, num_encoder_layers=1, num_decoder_layers=1, **sizes)
    sources, limit = ids((5, 5, 5, 5), 5), 3
    places = np.zeros((4, 1, 5), bool)
    places[np.arange(4), 0, [0, 1, 2, 3]] = True
    inside = np.zeros((2, 6), bool)
    terms = as_terms([once(term)] * 4, inside)._replace(places=places)
    said, scores = beam_search(
        model, sources, terms=terms, beam_size=60, max_length=limit, length_penalty=0
    )
    kinds = set()
    every = 1, 3, 4, 5
    outputs = [
        each
        for length in range(1, limit + 1)
        for each in itertools.product(every, repeat=length)
        if (model.end_id not in each[:-1])
        and (each[-1] == model.end_id or length == limit)
        and occurrences(each, [term], inside)
    ]
    for b, source in enumerate(sources):
        truth = {}
        for output in outputs:
            begin = next(i for i in range(limit) if output[i : i + len(term)] == term)
            weights = model.attention_weights(forced_inputs(model, source, output))
            weights = weights["decoder/0/cross"][0].mean(axis=0)  # (T, S)
            is_in_place = places[b, 0, weights[begin, :-1].argmax()]
            is_in_place |= begin + len(term) == limit  # nothing follows it
            kinds.add(bool(is_in_place))
            total = log_probabilities(model, source, np.array(output)).sum()
            truth[output] = total - (0 if is_in_place else MISPLACED)
        best = max(truth, key=truth.get)
        found = array(said, "int32")[b, 0]
        assert tuple(found[: len(best)].tolist()) == best
        assert array(scores)[b, 0] == pytest.approx(truth[best], abs=1e-3)
    assert kinds == {True, False}


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_scores_and_notes_are_those_of_whole_model(search):
    one = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model, source = make_model(seed=4, **one), ids((5, 3, 4), 5)
    rows = [once((7, 9), (11,)), {}, once((6, 6, 6))]
    inside = np.zeros((2, 19), bool)
    settings = {"max_length": 9, "length_penalty": 0, "return_notes": True}
    settings |= {"beam_size": 3} if search is beam_search else {}
    said, scores, notes = search(
        model, source, terms=as_terms(rows, inside), **settings
    )
    of_best = (3, -1) if search is greedy_search else (3, 3, -1)
    said = array(said, "int32").reshape(of_best).reshape(3, -1, 9)[:, 0]
    log_probs = array(notes["log_probs"]).reshape(3, -1, 9)[:, 0]
    for row, one, own, noted, score in zip(
        rows, said, source, log_probs, array(scores).reshape(3, -1)[:, 0], strict=True
    ):
        assert has_all(one.tolist(), row, inside)
        one = one[one != model.pad_id]
        expected = log_probabilities(model, own[own != model.pad_id], one)
        np.testing.assert_allclose(noted[: len(one)], expected, atol=1e-4)
        assert abs(score - expected.sum()) < 1e-3
