"""The encoder and decoder layers, which share a base class."""

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
from tiers import in_full

from keras_vanilla.layers import DecoderLayer, EncoderLayer

B, T, S, N, D, F = 3, 7, 11, 5, 10, 13
MASK = np.arange(T) < np.array([[T], [4], [1]])
MEMORY_MASK = np.arange(S) < np.array([[5], [S], [2]])
INPUTS = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")
WIDE_MEMORY = np.random.default_rng(2).normal(size=(B, S, 17)).astype("float32")
LAYERS = {
    EncoderLayer: [(INPUTS, MASK)],
    DecoderLayer: [(INPUTS, MASK), (MEMORY, MEMORY_MASK)],
}
MASKS = {
    EncoderLayer: {"mask": MASK},
    DecoderLayer: {"inputs_mask": MASK, "memory_mask": MEMORY_MASK},
}
ARGUMENTS = {
    "num_heads": N,
    "d_ff": F,
    "key_dim": 3,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation": "gelu",
    "normalize_first": True,
    "layer_norm_epsilon": 1e-4,
}


def make_layer(layer_class, inputs=None, **arguments):
    layer = layer_class(N, d_ff=F, **{"dropout": 0.0, **arguments})
    layer(*(inputs or tensors(layer_class)))
    return randomize(layer)


def tensors(layer_class):
    return [x for x, _ in LAYERS[layer_class]]


def carried(layer_class, *masks):
    """The inputs with these masks, or their own, attached as Keras does."""
    masks = masks or [mask for _, mask in LAYERS[layer_class]]
    return list(map(with_mask, tensors(layer_class), masks))


@pytest.mark.parametrize("layer_class", LAYERS)
def test_is_a_keras_layer(layer_class, tmp_path):
    names = ("inputs", "memory")
    inputs = dict(zip(names, tensors(layer_class), strict=False))
    check_layer(layer_class, ARGUMENTS, inputs, tmp_path)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_encoder_layer_equals_formula(normalize_first):
    layer = make_layer(EncoderLayer, normalize_first=normalize_first)
    expected = reference.encoder_layer(
        weights_of(layer), INPUTS.astype("float64"), MASK, normalize_first
    )
    assert_close(layer(INPUTS, mask=MASK), expected, 1e-6)


@pytest.mark.parametrize(
    ("normalize_first", "memory"),
    [(False, MEMORY), (True, MEMORY), (False, WIDE_MEMORY)],
    ids=["post-norm", "pre-norm", "wide memory"],
)
def test_decoder_layer_equals_formula(normalize_first, memory):
    layer = make_layer(DecoderLayer, [INPUTS, memory], normalize_first=normalize_first)
    expected = reference.decoder_layer(
        weights_of(layer),
        INPUTS.astype("float64"),
        memory.astype("float64"),
        MASK,
        MEMORY_MASK,
        normalize_first,
    )
    assert_close(layer(INPUTS, memory, **MASKS[DecoderLayer]), expected, 1e-6)


@pytest.mark.full
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_equals_pytorchs_layer_with_its_weights(layer_class, normalize_first):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import pytorch_weights

    name = {EncoderLayer: "encoder", DecoderLayer: "decoder"}[layer_class]
    theirs = getattr(torch.nn, f"Transformer{name.title()}Layer")(
        D, N, F, dropout=0.0, batch_first=True, norm_first=normalize_first
    )
    ours = make_layer(layer_class, normalize_first=normalize_first)
    weights = getattr(pytorch_weights, f"{name}_layer_weights")
    theirs.load_state_dict(weights(torch, weights_of(ours)))
    masks = {"src_key_padding_mask": torch.from_numpy(~MASK)}
    if layer_class is DecoderLayer:
        masks = {
            "tgt_mask": torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1),
            "tgt_key_padding_mask": torch.from_numpy(~MASK),
            "memory_key_padding_mask": torch.from_numpy(~MEMORY_MASK),
        }
    expected = theirs(*map(torch.from_numpy, tensors(layer_class)), **masks)
    actual = array(ours(*tensors(layer_class), **MASKS[layer_class]))
    assert_close(actual[MASK], expected.detach().numpy()[MASK], 1e-5)


@pytest.mark.parametrize("layer_class", LAYERS)
def test_explicit_masks_replace_implicit_ones(layer_class):
    layer = make_layer(layer_class)
    expected = layer(*tensors(layer_class), **MASKS[layer_class])
    np.testing.assert_array_equal(layer(*carried(layer_class)), expected)
    lost = [np.zeros(mask.shape, bool) for _, mask in LAYERS[layer_class]]
    outputs = layer(*carried(layer_class, *lost), **MASKS[layer_class])
    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("return_attention_scores", [False, True])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_mask_of_inputs_is_passed_on(layer_class, return_attention_scores):
    outputs = make_layer(layer_class)(
        *carried(layer_class), return_attention_scores=return_attention_scores
    )
    outputs = outputs[0] if return_attention_scores else outputs
    np.testing.assert_array_equal(mask_of(outputs), MASK)


@pytest.mark.parametrize("rates", [(0.5, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_each_dropout_is_active_only_in_training(layer_class, rates):
    layer = make_layer(layer_class, dropout=rates[0], attention_dropout=rates[1])
    inputs = tensors(layer_class)
    expected = make_layer(layer_class)(*inputs)
    np.testing.assert_array_equal(layer(*inputs), expected)
    np.testing.assert_array_equal(layer(*inputs, training=False), expected)
    assert np.abs(layer(*inputs, training=True) - expected).max() > 0.01


def test_attention_dropout_defaults_to_dropout():
    for given, expected in (({}, 0.3), ({"attention_dropout": 0.0}, 0.0)):
        layer = make_layer(EncoderLayer, dropout=0.3, **given)
        assert layer.self_attention.dropout == expected


def test_epsilon_reaches_both_norms():
    flat = 1e-3 * INPUTS  # small enough for epsilon to matter
    layer = make_layer(EncoderLayer, layer_norm_epsilon=0.1, normalize_first=True)
    for residual in (layer.self_attention_residual, layer.feed_forward_residual):
        names = "gamma", "beta"
        weights = dict(zip(names, residual.norm.get_weights(), strict=True))
        expected = reference.layer_norm(weights, flat.astype("float64"), epsilon=0.1)
        assert_close(residual.norm(flat), expected, 1e-6)


def test_seed_gives_each_dropout_its_own_numbers():
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


# Decoding


@pytest.mark.parametrize(
    ("normalize_first", "memory_mask"),
    [(False, MEMORY_MASK), (True, None), *in_full((False, None), (True, MEMORY_MASK))],
)
def test_steps_equal_whole_sequence(normalize_first, memory_mask):
    layer = make_layer(DecoderLayer, normalize_first=normalize_first)
    whole = layer(INPUTS, MEMORY, memory_mask=memory_mask)
    cache = layer.start_cache(MEMORY, max_length=T + 2)
    for index in range(T):
        place = index if index % 2 else keras.ops.convert_to_tensor(index)
        outputs, cache = layer.step(
            INPUTS[:, index : index + 1], cache, place, memory_mask
        )
        assert_close(outputs[:, 0], whole[:, index], 2e-6)


def test_step_returns_a_new_cache_of_documented_shapes():
    layer = make_layer(DecoderLayer, key_dim=3)
    cache = layer.start_cache(MEMORY, max_length=17)
    expected = {"self_key": 17, "self_value": 17, "cross_key": S, "cross_value": S}
    assert {k: tuple(x.shape) for k, x in cache.items()} == {
        name: (B, N, length, 3) for name, length in expected.items()
    }
    before = {name: array(x) for name, x in cache.items()}
    assert not before["self_key"].any() and not before["self_value"].any()
    _, after = layer.step(INPUTS[:, :1], cache, 0, MEMORY_MASK)
    for name, value in before.items():
        np.testing.assert_array_equal(cache[name], value)
    assert np.abs(array(after["self_key"])[:, :, 0]).min() > 0
    assert not array(after["self_key"])[:, :, 1:].any()
