"""Layers of PyTorch, replaced by ours: the same outputs."""

import numpy as np
import pytest
from checks import array, assert_close

from keras_vanilla.interop import load_pytorch_layer
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
)

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

B, T, S, N, D, F = 2, 7, 5, 3, 12, 17
TOLERANCE = 4e-6  # some rounding steps of float32
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(B, T, D)).astype("float32")
MEMORY = RANDOM.normal(size=(B, S, D)).astype("float32")
MASK = np.arange(T) < [[7], [4]]
MEMORY_MASK = np.arange(S) < [[3], [5]]
CAUSAL = np.tril(np.ones((T, T), bool))
VARIANTS = [
    ({}, {}),
    (
        {"norm_first": True, "activation": "gelu", "layer_norm_eps": 1e-3},
        {"normalize_first": True, "activation": "gelu", "layer_norm_epsilon": 1e-3},
    ),
]


def torch_layer(name, *sizes, **settings):
    """A layer of PyTorch with weights that no initializer gives."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*sizes, batch_first=True, **settings).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight += 0.3 * torch.randn_like(weight)
    return theirs


def outputs(theirs, *inputs, **masks):
    """Their outputs; boolean masks there are True for what is left out."""
    tensors = [torch.tensor(each) for each in inputs]
    masks = {name: torch.tensor(~mask) for name, mask in masks.items()}
    with torch.no_grad():
        return theirs(*tensors, **masks)


LAYERS = [  # of PyTorch, ours, inputs, our masks, their masks
    (
        "TransformerEncoderLayer",
        EncoderLayer,
        [INPUTS],
        {"mask": MASK, "use_causal_mask": True},
        {"src_key_padding_mask": MASK, "src_mask": CAUSAL},
    ),
    (
        "TransformerDecoderLayer",
        DecoderLayer,
        [INPUTS, MEMORY],
        {"inputs_mask": MASK, "memory_mask": MEMORY_MASK},
        {
            "tgt_mask": CAUSAL,
            "tgt_key_padding_mask": MASK,
            "memory_key_padding_mask": MEMORY_MASK,
        },
    ),
]


@pytest.mark.parametrize(("settings", "ours"), VARIANTS)
@pytest.mark.parametrize(("name", "kind", "inputs", "masks", "their_masks"), LAYERS)
def test_layers(name, kind, inputs, masks, their_masks, settings, ours):
    theirs = torch_layer(name, D, N, F, **settings)
    layer = kind(N, d_ff=F, **ours)
    load_pytorch_layer(layer, theirs)
    expected = outputs(theirs, *inputs, **their_masks).numpy()
    assert_close(array(layer(*inputs, **masks))[MASK], expected[MASK], TOLERANCE)


@pytest.mark.parametrize("bias", [True, False])
def test_multihead_attention(bias):
    theirs = torch_layer("MultiheadAttention", D, N, bias=bias)
    layer = MultiHeadAttention(N, D // N, use_bias=bias)
    load_pytorch_layer(layer, theirs)
    expected, weights = outputs(
        theirs, INPUTS, MEMORY, MEMORY, key_padding_mask=MEMORY_MASK
    )
    ours, our_weights = layer(
        INPUTS, MEMORY, value_mask=MEMORY_MASK, return_attention_scores=True
    )
    assert_close(ours, expected, TOLERANCE)
    assert_close(array(our_weights).mean(axis=1), weights, TOLERANCE)


def test_keys_and_values_of_other_widths():
    keys = RANDOM.normal(size=(B, S, 8)).astype("float32")
    values = RANDOM.normal(size=(B, S, 5)).astype("float32")
    theirs = torch_layer("MultiheadAttention", D, N, kdim=8, vdim=5)
    layer = MultiHeadAttention(N, D // N)
    load_pytorch_layer(layer, theirs)
    expected, _ = outputs(theirs, INPUTS, keys, values)
    assert_close(layer(INPUTS, values, keys), expected, TOLERANCE)


def test_layer_of_model_state():
    theirs = torch.nn.Transformer(D, N, 1, 2, F, batch_first=True).eval()
    prefix = "decoder.layers.1."
    state = {
        name.removeprefix(prefix): value.numpy()
        for name, value in theirs.state_dict().items()
        if name.startswith(prefix)
    }
    layer = DecoderLayer(N, d_ff=F)
    load_pytorch_layer(layer, state)
    expected = outputs(theirs.decoder.layers[1], INPUTS, MEMORY, tgt_mask=CAUSAL)
    assert_close(layer(INPUTS, MEMORY), expected, TOLERANCE)


def test_half_precision_weights_are_read():
    theirs = torch_layer("MultiheadAttention", D, N).bfloat16()
    layer = MultiHeadAttention(N, D // N)
    load_pytorch_layer(layer, theirs.state_dict())
    expected, _ = outputs(theirs.float(), INPUTS, MEMORY, MEMORY)
    assert_close(layer(INPUTS, MEMORY), expected, TOLERANCE)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"activation": "gelu"}, "needs activation='gelu'.*activation='relu'"),
        ({"activation": torch.nn.GELU("tanh")}, "needs activation='gelu .tanh.'"),
        ({"layer_norm_eps": 1e-6}, "needs layer_norm_epsilon=1e-06"),
        ({"norm_first": True}, "needs normalize_first=True"),
        ({"bias": False}, "weights have no 'self_attention/query/bias'"),
        ({"dim_feedforward": 19}, "'feed_forward/inner/kernel' must have the shape"),
    ],
)
def test_other_settings_are_refused(settings, sentence):
    sizes = {"d_model": D, "nhead": N, "dim_feedforward": F}
    theirs = torch.nn.TransformerEncoderLayer(**{**sizes, **settings})
    with pytest.raises(ValueError, match=sentence):
        load_pytorch_layer(EncoderLayer(N, d_ff=F), theirs)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_heads": 2}, "needs num_heads=2.*Received: num_heads=3"),
        ({"bias": False}, "weights have no 'query/bias'"),
        ({"add_zero_attn": True}, "with add_zero_attn=True does"),
        ({"add_bias_kv": True}, "no place for the weights of 'bias_k'"),
    ],
)
def test_unsupported_attentions_are_refused(settings, sentence):
    theirs = torch.nn.MultiheadAttention(D, **{"num_heads": N, **settings})
    with pytest.raises(ValueError, match=sentence):
        load_pytorch_layer(MultiHeadAttention(N, D // N), theirs)


@pytest.mark.parametrize(
    ("theirs", "error", "sentence"),
    [
        (torch.nn.Linear(3, 4), TypeError, "state_dict.* Received: a Linear"),
        ({"a": np.zeros(3)}, ValueError, "weights have no 'self_attention/query/kern"),
    ],
)
def test_other_objects_are_refused(theirs, error, sentence):
    with pytest.raises(error, match=sentence):
        load_pytorch_layer(EncoderLayer(N, d_ff=F), theirs)


def test_other_layers_are_refused():
    theirs = torch_layer("TransformerEncoderLayer", D, N, F)
    with pytest.raises(ValueError, match="have no 'cross_attention/key/kernel'"):
        load_pytorch_layer(DecoderLayer(N, d_ff=F), theirs)
    theirs = torch_layer("TransformerDecoderLayer", D, N, F)
    with pytest.raises(ValueError, match="no place for the weights of 'multihead_attn"):
        load_pytorch_layer(EncoderLayer(N, d_ff=F), theirs)
    with pytest.raises(TypeError, match="`layer` must be.*Received: a FeedForward"):
        load_pytorch_layer(FeedForward(F), theirs)


def test_class_with_another_forward_is_refused():
    class Shifted(torch.nn.TransformerEncoderLayer):
        def forward(self, *args, **kwargs):
            return super().forward(*args, **kwargs) + 2

    class Named(torch.nn.TransformerEncoderLayer):
        def __init__(self):
            super().__init__(D, N, F, batch_first=True)

    message = "what a TransformerEncoderLayer does. Received: a Shifted, .* `forward`"
    with pytest.raises(TypeError, match=message):
        load_pytorch_layer(EncoderLayer(N, d_ff=F), Shifted(D, N, F))
    load_pytorch_layer(EncoderLayer(N, d_ff=F), Named())
