import keras
import numpy as np
import pytest
import reference
from checks import (
    array,
    assert_close,
    check_layer,
    mask_of,
    randomize,
    weights_of,
    with_mask,
)

from keras_vanilla.layers import EncoderLayer

B, S, N, D, F = 3, 7, 5, 10, 13
MASK = np.arange(S) < np.array([[S], [4], [1]])
INPUTS = np.random.default_rng(0).normal(size=(B, S, D)).astype("float32")


def make_layer(inputs=INPUTS, **arguments):
    layer = EncoderLayer(N, d_ff=F, **{"dropout": 0.0, **arguments})
    layer(inputs)
    return randomize(layer)


def test_it_is_a_keras_layer(tmp_path):
    arguments = {
        "num_heads": N,
        "d_ff": F,
        "key_dim": 3,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation": "gelu",
        "normalize_first": True,
        "layer_norm_epsilon": 1e-4,
    }
    check_layer(EncoderLayer, arguments, {"inputs": INPUTS}, tmp_path)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_formula(normalize_first):
    layer = make_layer(normalize_first=normalize_first)
    expected = reference.encoder_layer(
        weights_of(layer), INPUTS.astype("float64"), MASK, normalize_first
    )
    assert_close(layer(INPUTS, mask=MASK), expected, 1e-6)


@pytest.mark.full
@pytest.mark.parametrize("normalize_first", [False, True])
def test_equals_pytorchs_layer_with_its_weights(normalize_first):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from pytorch_weights import encoder_layer_weights

    theirs = torch.nn.TransformerEncoderLayer(
        D, N, F, dropout=0.0, batch_first=True, norm_first=normalize_first
    )
    ours = make_layer(normalize_first=normalize_first)
    theirs.load_state_dict(encoder_layer_weights(torch, weights_of(ours)))
    expected = theirs(
        torch.from_numpy(INPUTS), src_key_padding_mask=torch.from_numpy(~MASK)
    )
    actual = array(ours(INPUTS, mask=MASK))
    assert_close(actual[MASK], expected.detach().numpy()[MASK], 1e-5)


def test_scores_are_those_of_the_attention():
    layer = make_layer()
    outputs, scores = layer(INPUTS, mask=MASK, return_attention_scores=True)
    np.testing.assert_array_equal(outputs, layer(INPUTS, mask=MASK))
    pairs = MASK[:, :, None] & MASK[:, None]
    expected = layer.self_attention(
        query=INPUTS, value=INPUTS, attention_mask=pairs, return_attention_scores=True
    )[1]
    np.testing.assert_array_equal(scores, expected)


def test_padding_never_changes_real_positions():
    layer = make_layer()
    short = layer(with_mask(INPUTS[:, :4], MASK[:, :4]))
    longer = layer(with_mask(INPUTS, MASK & (np.arange(S) < 4)))
    real = MASK[:, :4]
    assert_close(array(longer)[:, :4][real], array(short)[real], 1e-6)


def test_explicit_mask_wins_over_the_implicit_one():
    layer = make_layer()
    carried = with_mask(INPUTS, np.zeros((B, S), bool))
    np.testing.assert_array_equal(
        layer(carried, mask=MASK), layer(with_mask(INPUTS, MASK))
    )


@pytest.mark.parametrize("return_attention_scores", [False, True])
def test_mask_goes_through(return_attention_scores):
    outputs = make_layer()(
        with_mask(INPUTS, MASK), return_attention_scores=return_attention_scores
    )
    outputs = outputs[0] if return_attention_scores else outputs
    np.testing.assert_array_equal(mask_of(outputs), MASK)


@pytest.mark.parametrize(
    "rates",
    [
        {"dropout": 0.5, "attention_dropout": 0.0},
        {"dropout": 0.0, "attention_dropout": 0.5},
    ],
)
def test_each_dropout_is_active_in_training_alone(rates):
    layer = make_layer(**rates)
    expected = make_layer()(INPUTS)
    np.testing.assert_array_equal(layer(INPUTS), expected)
    np.testing.assert_array_equal(layer(INPUTS, training=False), expected)
    assert np.abs(layer(INPUTS, training=True) - expected).max() > 0.01


def test_attention_dropout_is_dropout_unless_given():
    assert make_layer(dropout=0.3).self_attention.dropout == 0.3
    assert make_layer(dropout=0.3, attention_dropout=0.0).self_attention.dropout == 0.0


def test_epsilon_reaches_both_norms():
    flat = 1e-3 * INPUTS  # small enough for epsilon to matter
    layer = make_layer(layer_norm_epsilon=0.1, normalize_first=True)
    for residual in (layer.self_attention_residual, layer.feed_forward_residual):
        names = "gamma", "beta"
        weights = dict(zip(names, residual.norm.get_weights(), strict=True))
        expected = reference.layer_norm(weights, flat.astype("float64"), epsilon=0.1)
        assert_close(residual.norm(flat), expected, 1e-6)


def test_seed_gives_each_dropout_numbers_of_its_own():
    layer = EncoderLayer(num_heads=2, d_ff=8, dropout=0.5, seed=5)
    inputs = np.ones((2, 3, 4), "float32")
    layer(inputs)
    again = EncoderLayer.from_config(layer.get_config())
    again(inputs)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(
        layer(inputs, training=True), again(inputs, training=True)
    )
    states = [
        tuple(keras.ops.convert_to_numpy(variable))
        for variable in layer.non_trainable_variables
        if variable.path.endswith("seed_generator_state")
    ]
    assert len(states) == len(set(states)) == 3
