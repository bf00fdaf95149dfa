import functools
import inspect

import keras
import numpy as np
import pytest
import reference
from checks import array, assert_close, weights_of
from models import SIZES, inputs, make_model
from tiers import in_full

from keras_vanilla.decoding import beam_search, greedy_search, sample
from keras_vanilla.layers import MultiHeadAttention
from keras_vanilla.models.presets import PRESETS
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.training import SmoothedCrossentropy

INPUTS = inputs()
CONFIGS = {
    "paper": {},
    "pre-norm": {"normalize_first": True},
    "concatenated": {"position_layout": "concatenated"},
    "untied": {"share_embeddings": False, "target_vocabulary_size": 23},
    "output bias": {"output_bias": True},
    "unscaled": {"scale_embeddings": False},
    "other pad": {"pad_id": 3, "end_id": 0},
    "starts with pad": {"start_id": 0},
    "starts with zeros": {"start_id": 0, "zero_pad": True},
    "tensor2tensor": {"position_layout": "tensor2tensor"},
    "last norms without pre-norm": {"final_norm": True},
    "output of its own": {"tie_output": False},
    "narrow decoder": {"decoder_d_ff": 3},
    "all": {
        "normalize_first": True,
        "final_norm": True,
        "position_layout": "tensor2tensor",
        "tie_output": False,
        "zero_pad": True,
        "forbidden_ids": [17, 1],
        "decoder_d_ff": 3,
        "share_embeddings": False,
        "target_vocabulary_size": 23,
        "output_bias": True,
        "scale_embeddings": False,
        "pad_id": 17,
        "start_id": 17,
    },
}

ONE_LAYER_EACH = {"num_encoder_layers": 1, "num_decoder_layers": 1}  # compiles fast


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.mark.parametrize(
    "name",
    ["paper", *in_full(*(name for name in CONFIGS if name != "paper"))],
)
def test_forward_pass_equals_formulas(name):
    layers = {} if name == "paper" else ONE_LAYER_EACH
    model = make_model(**CONFIGS[name], **layers)
    feed = inputs(start_id=model.start_id, pad_id=model.pad_id, first=5, size=17)
    expected = reference.transformer(
        weights_of(model),
        **feed,
        num_encoder_layers=model.num_encoder_layers,
        num_decoder_layers=model.num_decoder_layers,
        normalize_first=model.normalize_first,
        position_layout=model.position_layout,
        scale_embeddings=model.scale_embeddings,
        zero_pad=model.zero_pad,
        pad_id=model.pad_id,
    )
    assert 0.5 < np.abs(expected).max() < 20  # numbers that 1e-5 means something for
    logits = array(model(feed), "float64")
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)
    if name in ("paper", "all"):  # in a graph
        predicted = model.predict(feed, verbose=0)
        np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-5)


@pytest.mark.full
def test_settings_reach_every_layer_and_dropout_is_only_in_training():
    settings = {"dropout": 0.3, "attention_dropout": 0.2, "activation": "gelu"}
    settings |= {"layer_norm_epsilon": 0.1, "normalize_first": True, **ONE_LAYER_EACH}
    model = make_model(**settings)
    for layer in (*model.encoder_layers, *model.decoder_layers):
        assert (layer.dropout, layer.self_attention.dropout) == (0.3, 0.2)
        assert layer.layer_norm_epsilon == 0.1
        assert layer.feed_forward.activation is keras.activations.gelu
    assert model.encoder_norm.epsilon == model.decoder_norm.epsilon == 0.1
    assert model.positions.dropout == 0.3
    expected = make_model(**settings | {"dropout": 0.0, "attention_dropout": 0.0})
    np.testing.assert_array_equal(model(INPUTS), expected(INPUTS))
    assert np.abs(model(INPUTS, training=True) - model(INPUTS)).max() > 0.01
    memory, mask = model.encode(INPUTS["source_ids"])
    np.testing.assert_array_equal(mask, INPUTS["source_ids"] != 0)
    np.testing.assert_array_equal(memory, model.encode(INPUTS["source_ids"])[0])


# The paper has the numbers of base and big; bfloat16 weights take half the memory.
@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "vocabulary_size", "count"),
    [
        ("base", 37_000, 63_082_496),
        ("big", 37_000, 214_245_376),
        ("small", 8_000, None),
    ],
)
def test_presets_have_documented_number_of_parameters(name, vocabulary_size, count):
    model = Transformer.from_preset(
        name, source_vocabulary_size=vocabulary_size, dtype="bfloat16"
    )
    assert model.count_params() == count or abs(model.count_params() - 7.6e6) < 5e4


def test_override_replaces_setting_of_preset():
    overrides = {"d_ff": np.int64(13), "decoder_d_ff": 3, **ONE_LAYER_EACH}
    overrides |= {"normalize_first": True, "final_norm": False}
    model = Transformer.from_preset("tiny", source_vocabulary_size=11, **overrides)
    config = model.get_config()
    assert {**PRESETS["tiny"], **overrides}.items() <= config.items()
    assert type(config["d_ff"]) is int and model.encoder_norm is model.decoder_norm
    assert (model.encoder_layers[0].d_ff, model.decoder_layers[0].d_ff) == (13, 3)


# Properties, over shapes of which every dimension is another prime

SHAPES = [
    {"batch": 3, "source": 5, "target": 7, "num_heads": 2, "d_ff": 11},
    {"batch": 5, "source": 2, "target": 11, "num_heads": 3, "d_ff": 7},
    {"batch": 2, "source": 11, "target": 3, "num_heads": 7, "d_ff": 5},
]
HALF = pytest.param("mixed_bfloat16", 8e-2, marks=pytest.mark.full)


def properties(test):
    """Runs a test on a few shapes in float32 and in bfloat16."""
    test = pytest.mark.parametrize("case", range(len(SHAPES)))(test)
    policies = [("float32", 2e-5), HALF]
    return pytest.mark.parametrize(("policy", "tolerance"), policies)(test)


@functools.cache
def small_model(case, policy):
    return make_model(
        case,
        num_heads=SHAPES[case]["num_heads"],
        d_ff=SHAPES[case]["d_ff"],
        d_model=2 * SHAPES[case]["num_heads"],
        normalize_first=case == 1,
        num_encoder_layers=1,
        num_decoder_layers=2,
        dtype=policy,
    )


def padded_inputs(case, full_target=False):
    """Rows of all lengths, at least one of them full on each side."""
    random, shape = np.random.default_rng(case), SHAPES[case]
    lengths = {}
    for side in ("source", "target"):
        lengths[side] = random.integers(1, shape[side] + 1, shape["batch"])
        lengths[side][random.integers(shape["batch"])] = shape[side]
    if full_target:
        lengths["target"][:] = shape["target"]
    return inputs(tuple(lengths["source"]), tuple(lengths["target"]))


@properties
def test_padding_and_order_of_batch_change_nothing(policy, tolerance, case):
    model, feed = small_model(case, policy), padded_inputs(case)
    expected, real = array(model(feed)), feed["target_ids"] != 0
    longer = {name: np.pad(x, ((0, 0), (0, 3))) for name, x in feed.items()}
    difference = array(model(longer))[:, :-3] - expected
    assert np.abs(difference[real]).max() < tolerance
    order = np.roll(np.arange(SHAPES[case]["batch"]), 1)
    shuffled = {name: x[order] for name, x in feed.items()}
    assert np.abs(array(model(shuffled)) - expected[order]).max() < tolerance


def test_masked_source_end_changes_nothing():
    with_end = make_model(**ONE_LAYER_EACH)
    without = make_model(source_end=False, **ONE_LAYER_EACH)
    source = np.array([[7, 5, 9], [4, 6, 0]])
    ended = np.array([[7, 5, 9, 3], [4, 6, 3, 0]])
    feed = {"target_ids": INPUTS["target_ids"]}
    expected = array(with_end({"source_ids": source, **feed}))
    received = array(without({"source_ids": ended, **feed}))
    np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)
    assert np.abs(array(with_end({"source_ids": ended, **feed})) - expected).max() > 0.1
    nothing = array(without({"source_ids": ended[:, -1:], **feed}))
    assert np.isfinite(nothing).all()


@properties
def test_future_token_never_changes_earlier_logit(policy, tolerance, case):
    model, feed = small_model(case, policy), padded_inputs(case, full_target=True)
    expected, length = array(model(feed)), SHAPES[case]["target"]
    for changed in {1, length // 2, length - 1}:
        other = {name: x.copy() for name, x in feed.items()}
        other["target_ids"][:, changed:] = 23 - feed["target_ids"][:, changed:]
        other["target_ids"] %= 19
        actual = array(model(other))
        earlier = np.abs(actual[:, :changed] - expected[:, :changed]).max()
        assert earlier < tolerance
        assert np.abs(actual[:, changed] - expected[:, changed]).max() > tolerance


@properties
def test_steps_equal_whole_sequence(policy, tolerance, case):
    model, feed = small_model(case, policy), padded_inputs(case, full_target=True)
    whole, exact = array(model(feed)), array(small_model(case, "float32")(feed))
    tolerance += 2 * np.abs(whole - exact).max()  # both are rounded, each in its way
    batch, length = feed["target_ids"].shape
    cache = model.start_cache(*model.encode(feed["source_ids"]), length + 1)
    for index in range(length):
        logits, cache = model.decode_step(feed["target_ids"][:, index], index, cache)
        assert tuple(logits.shape) == (batch, 19)
        assert np.abs(array(logits) - whole[:, index]).max() < tolerance


# Precision


@pytest.mark.parametrize(
    "policy", ["mixed_bfloat16", *in_full("mixed_float16", "float64")]
)
@pytest.mark.parametrize("as_global", [False, *in_full(True)])
def test_logits_are_float32_whatever_the_policy(policy, as_global):
    before = keras.config.dtype_policy()
    try:
        if as_global:
            keras.config.set_dtype_policy(policy)
        dtype = None if as_global else policy
        model = make_model(output_bias=True, dtype=dtype, **ONE_LAYER_EACH)
        logits = model(INPUTS)
    finally:
        keras.config.set_dtype_policy(before)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert {layer.dtype_policy.name for layer in model.encoder_layers} == {policy}
    assert model.get_config()["dtype"]["config"]["name"] == policy
    # not rounded to half after the product: the bias, not a power of two, is in full
    model.logits_bias.bias.assign(array(model.logits_bias.bias) + 0.001)
    added = array(model(INPUTS)) - array(logits)
    assert_close(added, np.full(logits.shape, 0.001), 1e-3)


# Saving


def test_config_has_the_arguments_of_constructor(model):
    arguments = set(inspect.signature(Transformer).parameters)
    config = set(model.get_config())
    assert config == (arguments - {"embeddings", "kwargs"}) | {"name", "trainable"}
    for name in config - {"dtype"}:
        assert getattr(model, name) == model.get_config()[name]


@pytest.mark.parametrize(
    ("name", "compiled"), [("paper", False), *in_full(("all", True))]
)
def test_keras_file_gives_the_same_model(name, compiled, tmp_path):
    model = make_model(**CONFIGS[name], **ONE_LAYER_EACH, dtype="mixed_bfloat16")
    feed = inputs(start_id=model.start_id, pad_id=model.pad_id, first=5, size=17)
    if compiled:
        loss, optimizer = SmoothedCrossentropy(), keras.optimizers.Adam(1e-3)
        model.compile(optimizer, loss, micro_batches=2, run_eagerly=True)
        model.fit(feed, feed["target_ids"], verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is Transformer
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(loaded(feed), model(feed))
    assert len(loaded.weights) == len(model.weights)  # what is shared stays shared
    is_shared = loaded.source_embedding is loaded.target_embedding
    assert is_shared == model.share_embeddings
    if compiled:
        assert (int(loaded.optimizer.iterations), loaded.micro_batches) == (1, 2)
        loaded.train_on_batch(feed, feed["target_ids"])


@pytest.mark.full
@pytest.mark.parametrize("is_shared", [True, False])
def test_initial_tables_are_used_and_not_in_config(is_shared):
    draw = np.random.default_rng(0).normal
    tables = [draw(size=(size, 10)) for size in ((19,) if is_shared else (19, 23))]
    settings = {
        "target_vocabulary_size": len(tables[-1]),
        "share_embeddings": is_shared,
    }
    settings["embeddings"] = tables[0] if is_shared else tables
    model = Transformer(**SIZES, **settings)
    assert_close(model.source_embedding.embeddings, tables[0], 1e-6)
    assert_close(model.target_embedding.embeddings, tables[-1], 1e-6)
    assert (model.source_embedding is model.target_embedding) == is_shared
    assert "embeddings" not in model.get_config()


# Looking inside


def test_attention_weights_are_those_of_each_attention(model):
    weights = model.attention_weights(INPUTS)
    source, target = INPUTS["source_ids"] != 0, INPUTS["target_ids"] != 0
    batch, heads, rows, columns = 2, 5, target.shape[1], source.shape[1]
    expected = {f"encoder/{i}": (batch, heads, columns, columns) for i in range(2)}
    for i in range(3):
        expected[f"decoder/{i}/self"] = (batch, heads, rows, rows)
        expected[f"decoder/{i}/cross"] = (batch, heads, rows, columns)
    assert {name: value.shape for name, value in weights.items()} == expected
    for name, value in weights.items():
        assert isinstance(value, np.ndarray)
        total = value.sum(-1).transpose(0, 2, 1)  # (B, N, T) -> (B, T, N)
        real = source if name.startswith("encoder") else target
        np.testing.assert_allclose(total[real], 1.0, atol=1e-6)
        keys = target if name.endswith("self") else source
        assert not value.transpose(0, 3, 1, 2)[~keys].any()
    x = array(model.positions(model.source_embedding(INPUTS["source_ids"])), "float64")
    layer = reference.part(weights_of(model), "encoder_layer_0/self_attention")
    mask = source[:, :, None] & source[:, None]
    expected = reference.attention(layer, x, x, mask)[1]
    assert_close(weights["encoder/0"], expected, 1e-5)


# Encoder and cache


def test_searches_and_steps_never_choose_forbidden_ids():
    free = make_model(**ONE_LAYER_EACH)
    sources = INPUTS["source_ids"]
    usual = array(greedy_search(free, sources, max_length=9), "int32")
    forbidden = sorted({*usual.ravel().tolist()} - {free.end_id})
    assert forbidden != [free.pad_id]
    model = make_model(forbidden_ids=forbidden, **ONE_LAYER_EACH)
    cache = model.start_cache(*model.encode(sources), 5)
    logits = array(model.decode_step(np.array([2, 2]), 0, cache)[0])
    assert np.flatnonzero(np.isneginf(logits).all(axis=0)).tolist() == forbidden
    for outputs in (
        greedy_search(model, sources, max_length=9),
        beam_search(model, sources, max_length=9)[0],
        sample(model, sources, 9, seed=1),
    ):
        outputs = array(outputs)
        before_the_end = np.cumsum(outputs == model.end_id, axis=-1) == 0
        assert not np.isin(outputs[before_the_end], forbidden).any()
    # they have no probability, although the logits of the whole model are finite
    ids, score = greedy_search(model, sources, max_length=1, return_scores=True)
    feed = {"source_ids": sources, "target_ids": np.array([[2], [2]])}
    allowed = np.delete(array(model(feed), "float64")[:, 0], forbidden, axis=1)
    expected = allowed.max(axis=1) - np.log(np.exp(allowed).sum(axis=1))
    np.testing.assert_allclose(score, expected, atol=1e-5)


def test_attention_weights_are_computed_only_on_request(monkeypatch):
    model, without_weights = make_model(**ONE_LAYER_EACH), []
    attend = MultiHeadAttention.attend

    def counted(self, *args, **kwargs):
        without_weights.append(self.name)
        return attend(self, *args, **kwargs)

    monkeypatch.setattr(MultiHeadAttention, "attend", counted)
    model(INPUTS)
    assert len(without_weights) == model.num_encoder_layers + (
        2 * model.num_decoder_layers
    )
    without_weights.clear()
    model.attention_weights(INPUTS)
    assert without_weights == []


def test_seed_gives_weights_of_earlier_versions():
    # The first numbers of the first and the last drawn weight in 0.6.0. Each weight
    # takes its seed from one sequence: another draw from it changes all that follow.
    keras.utils.set_random_seed(2)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16}
    model = Transformer(19, **sizes, num_encoder_layers=1, num_decoder_layers=1)
    first = model.source_embedding.embeddings
    last = model.decoder_layers[0].feed_forward.outer.kernel
    assert_close(array(first)[0, :2], [-0.10361714, -0.33125323], 1e-6)
    assert_close(array(last)[0, :2], [-0.09621799, -0.16369414], 1e-6)
