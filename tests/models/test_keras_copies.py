"""Pickle, `copy.deepcopy`, `from_config` and `clone_model`, as of Keras's objects."""

import copy
import pickle

import keras
import numpy as np
import pytest
from micro_batch_worker import ONE_LAYER
from models import inputs, make_model

from keras_vanilla import layers, training

COPIES = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "deepcopy": copy.deepcopy,
    "from_config": lambda one: type(one).from_config(one.get_config()),
}
PARTS = {
    "loss": training.SmoothedCrossentropy(0.2, pad_id=5),
    "accuracy": training.TokenAccuracy(pad_id=5),
    "crossentropy": training.TokenCrossentropy(),
    "perplexity": training.Perplexity(),
    "schedule": training.TransformerSchedule(10, 7),
    "cooldown": training.Cooldown(training.TransformerSchedule(10), 9, 3),
    "optimizer": training.transformer_optimizer(10, 7),
    "attention": layers.MultiHeadAttention(2, 3),
    "encoder layer": layers.EncoderLayer(2, d_ff=3),
    "decoder layer": layers.DecoderLayer(2, d_ff=3),
    "feed-forward": layers.FeedForward(3),
    "positions": layers.PositionalEncoding(),
    "embedding": layers.TokenEmbedding(5, 4),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", PARTS)
def test_part_is_copied(name, way):
    copied = COPIES[way](PARTS[name])
    assert copied is not PARTS[name] and type(copied) is type(PARTS[name])
    assert copied.get_config() == PARTS[name].get_config()


def compiled(micro_batches=1):
    model = make_model(**ONE_LAYER)
    model.compile(
        training.transformer_optimizer(model.d_model),
        training.SmoothedCrossentropy(),
        metrics=[training.TokenAccuracy()],
        micro_batches=micro_batches,
        jit_compile=False,
    )
    return model


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_compiled_transformer_is_copied_with_weights(way, micro_batches):
    model = compiled(micro_batches)
    copied = COPIES[way](model)
    assert type(copied) is type(model) and copied.compiled
    assert copied.micro_batches == micro_batches
    np.testing.assert_array_equal(copied(inputs()), model(inputs()))


def test_clone_model_copies_function_and_compilation():
    model = compiled()
    clone = keras.models.clone_model(model)
    assert clone.compiled and type(clone.loss) is type(model.loss)
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(inputs()), model(inputs()), atol=1e-6)


def test_clone_model_refuses_micro_batches():
    with pytest.raises(TypeError, match="micro_batches"):
        keras.models.clone_model(compiled(2))


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_translator_is_copied(way, small_translator, unseen_sentences):
    copied = COPIES[way](small_translator)
    texts = unseen_sentences[:3]
    assert copied.translate(texts) == small_translator.translate(texts)
