"""A training with `ExactResume` leaves its process and its data as they were."""

import pytest
import tensorflow as tf
from small_fit import compiled, data, fit
from stopping import AfterBatches, Crash
from tensorflow.python.framework import config
from word_reversal import dutch, english_sentences

from keras_vanilla import Transformer
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import Diverged, ExactResume, compile_for_training

LAYERS = {"num_encoder_layers": 1, "num_decoder_layers": 1}


def test_making_the_callback_changes_nothing(tmp_path):
    ExactResume(tmp_path, data())
    assert not config.is_op_determinism_enabled()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", [False, True])
def test_operations_are_as_deterministic_afterwards_as_before(tmp_path, before):
    seen = []
    look = AfterBatches(1, lambda: seen.append(config.is_op_determinism_enabled()))
    if before:
        config.enable_op_determinism()
    with pytest.warns(UserWarning, match="AfterBatches"):
        fit(compiled(), tmp_path, [look], epochs=1)
    assert seen == [True]
    assert config.is_op_determinism_enabled() is before


@pytest.mark.parametrize("error", [Crash, Diverged])
def test_they_are_after_an_error_too(tmp_path, error):
    callbacks = [AfterBatches(2)] if error is Crash else []
    rate = 0.05 if error is Crash else 1e30
    with pytest.raises(error):
        fit(compiled(rate), tmp_path, callbacks, epochs=1)
    tf.random.normal([2])  # which needs a seed where operations are deterministic


@pytest.mark.full
def test_an_error_that_no_callback_sees_is_undone_by_the_next_fit(tmp_path):
    with pytest.raises(Crash):
        fit(compiled(), tmp_path / "a", crash=2, epochs=1)
    assert config.is_op_determinism_enabled()
    fit(compiled(), tmp_path / "b", epochs=1)
    assert not config.is_op_determinism_enabled()


def first_ids(data):
    return next(iter(data))[0]["source_ids"].tolist()


@pytest.mark.full
def test_the_data_begin_afterwards_where_they_began(tmp_path):
    sources = english_sentences(60, 0)
    pairs = ParallelCorpus(sources, map(dutch, sources))
    tokenizer = Tokenizer.train(pairs.sources, vocabulary_size=300)
    train = batches(pairs, tokenizer, tokens_per_batch=256, first_step=2)
    size = tokenizer.vocabulary_size
    begin = first_ids(train)

    def run(crash=0):
        model = Transformer.from_preset("tiny", source_vocabulary_size=size, **LAYERS)
        compile_for_training(model)
        callbacks = [ExactResume(tmp_path, train, every=1), AfterBatches(crash)]
        settings = {"epochs": 2, "verbose": 0, "shuffle": False}
        model.fit(train, callbacks=callbacks, **settings)

    for crash in (3, 1, 0):  # 1: it is resumed, and reads from the fourth step on
        try:
            run(crash)
        except Crash:
            pass
        assert train.first_step() == 2
        assert not config.is_op_determinism_enabled()
    assert first_ids(train) == begin


def test_a_map_of_random_numbers_is_refused_before_anything_changes(tmp_path):
    tf.random.set_seed(None)  # a seed gives each pass the same numbers
    numbers = tf.data.Dataset.range(8).map(lambda n: tf.random.uniform([3]))
    pairs = numbers.map(lambda x: (x, x[:2])).batch(2).prefetch(1)
    with pytest.raises(ValueError, match="another first batch each time"):
        ExactResume(tmp_path, pairs)
    assert not config.is_op_determinism_enabled()
