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

from keras_vanilla.layers import DecoderLayer

B, T, S, N, D, F = 3, 7, 11, 5, 10, 13
MASK = np.arange(T) < np.array([[T], [4], [1]])
MEMORY_MASK = np.arange(S) < np.array([[5], [S], [2]])
INPUTS = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")
MASKS = {"inputs_mask": MASK, "memory_mask": MEMORY_MASK}


def make_layer(memory=MEMORY, **arguments):
    layer = DecoderLayer(N, d_ff=F, **{"dropout": 0.0, **arguments})
    layer(INPUTS, memory)
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
    inputs = {"inputs": INPUTS, "memory": MEMORY}
    check_layer(DecoderLayer, arguments, inputs, tmp_path)


@pytest.mark.parametrize(
    ("normalize_first", "memory_width"), [(False, D), (True, D), (False, 17)]
)
def test_formula(normalize_first, memory_width):
    memory = np.random.default_rng(2).normal(size=(B, S, memory_width))
    layer = make_layer(memory.astype("float32"), normalize_first=normalize_first)
    expected = reference.decoder_layer(
        weights_of(layer),
        INPUTS.astype("float64"),
        memory,
        MASK,
        MEMORY_MASK,
        normalize_first,
    )
    assert_close(layer(INPUTS, memory.astype("float32"), **MASKS), expected, 1e-6)


@pytest.mark.full
@pytest.mark.parametrize("normalize_first", [False, True])
def test_equals_pytorchs_layer_with_its_weights(normalize_first):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from pytorch_weights import decoder_layer_weights

    theirs = torch.nn.TransformerDecoderLayer(
        D, N, F, dropout=0.0, batch_first=True, norm_first=normalize_first
    )
    ours = make_layer(normalize_first=normalize_first)
    theirs.load_state_dict(decoder_layer_weights(torch, weights_of(ours)))
    expected = theirs(
        torch.from_numpy(INPUTS),
        torch.from_numpy(MEMORY),
        tgt_mask=torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1),
        tgt_key_padding_mask=torch.from_numpy(~MASK),
        memory_key_padding_mask=torch.from_numpy(~MEMORY_MASK),
    )
    actual = array(ours(INPUTS, MEMORY, **MASKS))
    assert_close(actual[MASK], expected.detach().numpy()[MASK], 1e-5)


def test_scores_have_each_attentions_shape_and_are_not_the_output():
    outputs, own, cross = make_layer()(
        INPUTS, MEMORY, **MASKS, return_attention_scores=True
    )
    assert tuple(outputs.shape) == (B, T, D)
    assert tuple(own.shape) == (B, N, T, T) and tuple(cross.shape) == (B, N, T, S)
    future = ~np.tril(np.ones((T, T), bool))
    assert not array(own)[..., future].any()
    for scores, keys in ((own, MASK), (cross, MEMORY_MASK)):
        total = array(scores).sum(-1).transpose(0, 2, 1)  # (B, N, T) -> (B, T, N)
        assert_close(total[MASK], np.ones((MASK.sum(), N)), 1e-6)
        assert not total[~MASK].any()
        assert not array(scores).transpose(0, 3, 1, 2)[~keys].any()


def test_a_future_token_never_changes_an_earlier_output():
    layer = make_layer()
    expected = array(layer(INPUTS, MEMORY, **MASKS))
    for changed in range(1, T):
        other = INPUTS.copy()
        other[:, changed:] += 1.0
        actual = array(layer(other, MEMORY, **MASKS))
        np.testing.assert_array_equal(actual[:, :changed], expected[:, :changed])
        assert np.abs(actual[0, changed:] - expected[0, changed:]).min() > 0


def test_padding_of_either_side_never_changes_real_positions():
    layer = make_layer()
    short, short_memory = MASK[:, :4], MEMORY_MASK[:, :6]
    expected = layer(
        with_mask(INPUTS[:, :4], short), with_mask(MEMORY[:, :6], short_memory)
    )
    actual = layer(
        with_mask(INPUTS, MASK & (np.arange(T) < 4)),
        with_mask(MEMORY, MEMORY_MASK & (np.arange(S) < 6)),
    )
    assert_close(array(actual)[:, :4][short], array(expected)[short], 1e-6)


def test_implicit_masks_are_found_and_explicit_ones_win():
    layer = make_layer()
    expected = layer(INPUTS, MEMORY, **MASKS)
    carried = with_mask(INPUTS, MASK), with_mask(MEMORY, MEMORY_MASK)
    np.testing.assert_array_equal(layer(*carried), expected)
    lost = [with_mask(x, np.zeros(x.shape[:2], bool)) for x in (INPUTS, MEMORY)]
    np.testing.assert_array_equal(layer(*lost, **MASKS), expected)


@pytest.mark.parametrize("return_attention_scores", [False, True])
def test_the_inputs_mask_goes_through(return_attention_scores):
    outputs = make_layer()(
        with_mask(INPUTS, MASK),
        with_mask(MEMORY, MEMORY_MASK),
        return_attention_scores=return_attention_scores,
    )
    outputs = outputs[0] if return_attention_scores else outputs
    np.testing.assert_array_equal(mask_of(outputs), MASK)


@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("with_memory_mask", [False, True])
def test_steps_equal_the_whole_sequence(normalize_first, with_memory_mask):
    layer = make_layer(normalize_first=normalize_first)
    memory_mask = MEMORY_MASK if with_memory_mask else None
    whole = layer(INPUTS, MEMORY, memory_mask=memory_mask)
    cache = layer.start_cache(MEMORY, max_length=T + 2)
    for index in range(T):
        place = index if index % 2 else keras.ops.convert_to_tensor(index)
        outputs, cache = layer.step(
            INPUTS[:, index : index + 1], cache, place, memory_mask
        )
        assert_close(outputs[:, 0], whole[:, index], 2e-6)


def test_cache_has_the_documented_shapes_and_a_step_leaves_it_alone():
    layer = make_layer(key_dim=3)
    cache = layer.start_cache(MEMORY, max_length=17)
    expected = {"self_key": 17, "self_value": 17, "cross_key": S, "cross_value": S}
    assert {k: tuple(x.shape) for k, x in cache.items()} == {
        name: (B, N, length, 3) for name, length in expected.items()
    }
    assert not array(cache["self_key"]).any() and not array(cache["self_value"]).any()
    before = {name: array(x) for name, x in cache.items()}
    _, after = layer.step(INPUTS[:, :1], cache, 0, MEMORY_MASK)
    for name, value in before.items():
        np.testing.assert_array_equal(cache[name], value)
    assert np.abs(array(after["self_key"])[:, :, 0]).min() > 0
    assert not array(after["self_key"])[:, :, 1:].any()


@pytest.mark.parametrize(
    "rates",
    [
        {"dropout": 0.5, "attention_dropout": 0.0},
        {"dropout": 0.0, "attention_dropout": 0.5},
    ],
)
def test_each_dropout_is_active_in_training_alone(rates):
    layer = make_layer(**rates)
    expected = make_layer()(INPUTS, MEMORY)
    np.testing.assert_array_equal(layer(INPUTS, MEMORY), expected)
    assert np.abs(layer(INPUTS, MEMORY, training=True) - expected).max() > 0.01


@pytest.mark.parametrize("index", [-1, T, np.int64(T), np.array(T, "int32")])
def test_a_step_outside_the_cache_is_refused(index):
    layer = make_layer()
    cache = layer.start_cache(MEMORY, max_length=T)
    with pytest.raises(ValueError, match=f"holds {T}. Received: index={index}"):
        layer.step(INPUTS[:, :1], cache, index)


def test_a_step_of_two_tokens_is_refused():
    layer = make_layer()
    cache = layer.start_cache(MEMORY, max_length=T)
    with pytest.raises(ValueError, match=rf"\(B, 1, D\). Received .* \({B}, 2, {D}\)"):
        layer.step(INPUTS[:, :2], cache, 0)
