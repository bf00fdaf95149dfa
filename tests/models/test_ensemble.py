"""Ensembles: the mean of the probabilities of several models."""

import keras
import numpy as np
import pytest
from checks import array, assert_close, randomize

from keras_vanilla import Transformer
from keras_vanilla.decoding import CompiledSearch, beam_search, greedy_search
from keras_vanilla.models import Ensemble

V = 11
SIZES = {
    "source_vocabulary_size": V,
    "num_heads": 2,
    "d_ff": 13,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "dropout": 0.0,
    "max_length": 9,
}
IDS = {
    "source_ids": np.array([[5, 7, 3], [4, 3, 0]]),
    "target_ids": np.array([[2, 6, 8], [2, 9, 1]]),
}


def models(**settings):
    """Two models of different sizes."""
    return [
        randomize(Transformer(**{**SIZES, "d_model": d_model, **settings}), seed)
        for seed, d_model in enumerate((8, 12))
    ]


@pytest.fixture(scope="module")
def ensemble():
    return Ensemble(models())


def probabilities(logits):
    exponentials = np.exp(array(logits, "float64"))
    return exponentials / exponentials.sum(-1, keepdims=True)


def test_its_logits_are_of_the_mean_of_the_probabilities(ensemble):
    each = [probabilities(model(IDS)) for model in ensemble.models]
    expected = np.mean(each, axis=0)
    assert_close(np.exp(array(ensemble(IDS))), expected, 1e-5)
    assert not np.allclose(expected, each[0], atol=0.01)


@pytest.mark.parametrize("beam_size", [None, 3])
def test_its_steps_are_its_call(beam_size, ensemble):
    memory, mask = ensemble.encode(IDS["source_ids"])
    cache = ensemble.start_cache(memory, mask, 3, beam_size)
    expected = array(ensemble(IDS))
    for index, ids in enumerate(IDS["target_ids"].T):
        if beam_size is not None:  # each beam the same hypothesis
            ids = np.repeat(ids[:, None], beam_size, axis=1)
        logits, cache = ensemble.decode_step(ids, index, cache)
        if beam_size is None:
            assert_close(logits, expected[:, index], 1e-5)
        else:
            for beam in range(beam_size):
                assert_close(array(logits)[:, beam], expected[:, index], 1e-5)


def first_array(results):
    """The ids of a search, which may return scores as well."""
    return array(keras.tree.flatten(results)[0], "int32")


def best_of_all(ensemble, source, length):
    """The most probable hypothesis among all, by the models' calls alone."""
    hypotheses = {(): 0.0}
    for _ in range(length):
        ended = {ids: s for ids, s in hypotheses.items() if ids and ids[-1] == 3}
        others = [ids for ids in hypotheses if ids not in ended]
        inputs = {
            "source_ids": np.repeat(source, len(others), axis=0),
            "target_ids": np.array([(2, *ids) for ids in others]),
        }
        each = [probabilities(model(inputs))[:, -1] for model in ensemble.models]
        longer = {
            (*ids, token): hypotheses[ids] + np.log(p)
            for ids, row in zip(others, np.mean(each, axis=0), strict=True)
            for token, p in enumerate(row)
        }
        hypotheses = {**ended, **longer}
    return max(hypotheses.items(), key=lambda item: item[1])


def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_all_hypotheses(ensemble):
    source = IDS["source_ids"][:1]
    expected, log_prob = best_of_all(ensemble, source, 2)
    ids, scores = beam_search(
        ensemble, source, beam_size=V, length_penalty=0.0, max_length=2, n_best=1
    )
    found = [i for i in array(ids, "int32")[0, 0].tolist() if i != 0]
    assert found == list(expected)
    assert_close(scores[0, 0], log_prob, 1e-5)


@pytest.mark.full
def test_a_compiled_search_of_it_is_the_plain_one(ensemble):
    for search, settings in ((greedy_search, {}), (beam_search, {"beam_size": 3})):
        plain = search(ensemble, IDS["source_ids"], max_length=6, **settings)
        compiled = CompiledSearch(ensemble)(
            search, IDS["source_ids"].astype("int32"), max_length=6, **settings
        )
        np.testing.assert_array_equal(first_array(compiled), first_array(plain))


@pytest.mark.full
def test_one_model_twice_searches_as_it_does_alone(ensemble):
    model = ensemble.models[0]
    both = Ensemble([model, model])
    for search in (greedy_search, beam_search):
        alone = search(model, IDS["source_ids"], max_length=6)
        twice = search(both, IDS["source_ids"], max_length=6)
        np.testing.assert_array_equal(first_array(twice), first_array(alone))


def test_ids_that_are_forbidden_stay_so():
    ensemble = Ensemble(models(forbidden_ids=[5]))
    memory, mask = ensemble.encode(IDS["source_ids"])
    cache = ensemble.start_cache(memory, mask, 3)
    logits = array(ensemble.decode_step(np.array([2, 2]), 0, cache)[0])
    assert np.all(np.isneginf(logits[:, 5]))
    assert np.all(np.isfinite(np.delete(logits, 5, axis=1)))


def test_it_is_a_keras_model_that_is_saved_and_copied(tmp_path, ensemble):
    expected = array(ensemble(IDS))
    ensemble.save(tmp_path / "ensemble.keras")
    loaded = keras.saving.load_model(tmp_path / "ensemble.keras")
    np.testing.assert_array_equal(array(loaded(IDS)), expected)
    np.testing.assert_array_equal(array(ensemble.copy()(IDS)), expected)
    halved = [weight / 2 for weight in ensemble.get_weights()]
    other = ensemble.copy(halved)
    assert not np.allclose(array(other(IDS)), expected)
    np.testing.assert_array_equal(array(ensemble(IDS)), expected)
    assert ensemble.is_plain


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source_vocabulary_size": 12}, "`source_vocabulary_size`.*11 and 12"),
        ({"end_id": 4}, "`end_id`.*3 and 4"),
        ({"source_end": False}, "`source_end`.*True and False"),
    ],
)
def test_models_that_differ_are_refused(change, words, ensemble):
    other = Transformer(**{**SIZES, "d_model": 8, **change})
    with pytest.raises(ValueError, match=words):
        Ensemble([ensemble.models[0], other])


def test_what_is_no_list_of_models_is_refused(ensemble):
    with pytest.raises(ValueError, match="at least one Transformer"):
        Ensemble([])
    with pytest.raises(TypeError, match="a Dense in it"):
        Ensemble([keras.layers.Dense(3)])
    with pytest.raises(NotImplementedError, match="one of its `models`"):
        ensemble.attention_weights(IDS)


@pytest.mark.parametrize("name", ["model.h5", "model.hdf5"])
def test_files_that_keras_could_not_load_are_refused(name, tmp_path, ensemble):
    for each in (ensemble.models[0], ensemble):
        with pytest.raises(ValueError, match=r"an end of .keras.*Received: '.*\.h"):
            each.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
