import numpy as np
import pytest
from automaton import END, PAD, Automaton
from models import ids, make_model
from tiers import in_full

from keras_vanilla.decoding import beam_search, greedy_search, sample, trace_search

SOURCE = np.array([[4], [9], [23]])
SEARCHES = {
    "greedy": (greedy_search, {"return_scores": True}),
    "beam": (beam_search, {"beam_size": 5, "n_best": 3}),
    "sample": (sample, {"temperature": 1.3, "top_p": 0.9, "seed": 7}),
}


def arrays(result):
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else [result])]


def automaton():
    return Automaton.random(7, seed=1, max_length=13), SOURCE


def transformer():
    return make_model(seed=2), ids((5, 3, 7), 7)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((automaton, name) for name in SEARCHES),
        (transformer, "beam"),
        *in_full((transformer, "greedy"), (transformer, "sample")),
    ],
)
def test_result_equals_that_of_search(make, name):
    model, source_ids = make()
    search, arguments = SEARCHES[name]
    expected = arrays(search(model, source_ids, max_length=6, **arguments))
    result, states = trace_search(search, model, source_ids, max_length=6, **arguments)
    for found, wanted in zip(arrays(result), expected, strict=True):
        assert isinstance(found, np.ndarray) and found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert [int(state["index"]) for state in states] == list(range(len(states)))
    for state in states:
        assert not state.keys() & {"cache", "notes", "terms", "pool"}
        assert all(isinstance(value, np.ndarray) for value in state.values())


def test_states_grow_to_the_result():
    model = Automaton.random(7, seed=1, max_length=13)
    (found, scores), states = trace_search(
        greedy_search, model, SOURCE, return_scores=True
    )
    np.testing.assert_array_equal(states[-1]["ids"], found)
    np.testing.assert_array_equal(states[-1]["sums"], scores)
    assert states[-1]["finished"].all()
    for n, state in enumerate(states):
        np.testing.assert_array_equal(state["ids"][:, :n], found[:, :n])
        assert (state["ids"][:, n:] == PAD).all()


def test_logits_are_those_of_model():
    model = Automaton.random(7, seed=1, max_length=13)
    states = trace_search(beam_search, model, SOURCE, beam_size=5)[1]
    assert "logits" not in states[-1]
    compared = 0
    for n, state in enumerate(states[:-1]):
        assert state["logits"].shape == (3, 5, 7)
        for row, beam in np.argwhere(
            np.isfinite(state["log_probs"]) & ~state["finished"]
        ):
            said = state["ids"][row, beam, :n].tolist()
            assert END not in said
            logits = state["logits"][row, beam].astype("float64")
            expected = model.next_log_probs(SOURCE[row])(said)
            np.testing.assert_allclose(
                logits - np.log(np.exp(logits).sum()), expected, atol=1e-5
            )
            compared += 1
    assert compared > 20
