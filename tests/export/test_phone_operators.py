"""While a model is written as a graph, it computes the same in other operators."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from keras_vanilla import Transformer, Translator, export
from keras_vanilla._operators import Operators, current_operators, use_operators
from keras_vanilla.export.fused_projections import fused_attentions
from keras_vanilla.export.phone_operators import PhoneOperators
from keras_vanilla.layers import DecoderLayer, EncoderLayer, MultiHeadAttention

INPUTS = {
    "source_ids": np.array([[7, 8, 3], [9, 3, 0]]),
    "target_ids": np.array([[2, 5, 6], [2, 9, 0]]),
}


def make_model(d_model=32, **settings):
    keras.utils.set_random_seed(0)
    sizes = {"d_model": d_model, "num_heads": 2, "d_ff": 16, "max_length": 10}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    model = Transformer(20, **{**sizes, **layers, **settings})
    rng = np.random.default_rng(0)
    model.set_weights([0.3 * rng.normal(size=w.shape) for w in model.get_weights()])
    return model


def test_all_outputs_are_equal_inside():
    model = make_model(share_embeddings=False)
    memory, mask = model.encode(INPUTS["source_ids"])
    cache = model.start_cache(memory, mask, 4)
    whole, step = model(INPUTS), model.decode_step(np.array([2, 2]), 0, cache)[0]
    assert len(fused_attentions(model)) == 3
    with use_operators(PhoneOperators(model)):
        np.testing.assert_allclose(model(INPUTS), whole, rtol=2e-6, atol=2e-5)
        again = model.decode_step(np.array([2, 2]), 0, cache)[0]
    np.testing.assert_allclose(again, step, rtol=2e-6, atol=2e-5)


class Zeros(Operators):
    def lookup(self, table, ids):
        return 0 * super().lookup(table, ids)

    def project(self, attention, query, key, value):
        return [0 * x for x in super().project(attention, query, key, value)]


def test_layers_compute_with_the_operators_of_the_block_and_thread():
    model = make_model()
    embedding, attention = model.source_embedding, fused_attentions(model)[0]
    x = np.ones((1, 2, 32), "float32")

    def largest():
        projected = attention.project(x, x, x)
        results = embedding(INPUTS["source_ids"]), *projected
        return max(float(np.max(np.abs(each))) for each in results)

    before = largest()
    with pytest.raises(ZeroDivisionError), ThreadPoolExecutor(1) as pool:
        with use_operators(Zeros()):
            assert largest() == 0 < pool.submit(largest).result() == before
            _ = 1 / 0
    assert largest() == before and type(current_operators()) is Operators


def test_matrices_that_stay_in_float32_stay_apart():
    assert not fused_attentions(make_model(d_model=30))


@pytest.mark.full
def test_feed_forward_as_wide_as_three_projections(trained_translator, tmp_path):
    """Matrices that are as large as those of other layers are no duplicates."""
    tokenizer = trained_translator.tokenizer
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 96, "max_length": 60}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(tokenizer.vocabulary_size, **sizes, **layers)
    path = tmp_path / "x.tflite"
    export.tflite(Translator(tokenizer, model), path, check="structure")
    assert path.exists()


@keras.saving.register_keras_serializable("test_phone_operators")
class OppositeQueries(MultiHeadAttention):
    def project_query(self, query):
        return -super().project_query(query)


@keras.saving.register_keras_serializable("test_phone_operators")
class WithoutBias(EncoderLayer):
    def make_attention(self, name, d_model):
        return MultiHeadAttention(2, d_model // 2, use_bias=False, name=name)


@keras.saving.register_keras_serializable("test_phone_operators")
class WithOppositeQueries(DecoderLayer):
    def make_attention(self, name, d_model):
        return OppositeQueries(2, d_model // 2, name=name)


def test_other_projections_stay_as_they_are():
    makers = {"encoder_layer": WithoutBias, "decoder_layer": WithOppositeQueries}
    model = make_model(**makers)
    before = np.asarray(model(INPUTS))
    assert not fused_attentions(model)
    with use_operators(PhoneOperators(model)):
        np.testing.assert_array_equal(np.asarray(model(INPUTS)), before)
