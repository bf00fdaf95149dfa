"""Computes a little of everything on the backend of KERAS_BACKEND, for comparison.

    python backend_probe.py OUTPUT.npz [--without-tensorflow]

Weights and inputs are drawn by NumPy, so every backend has the same ones.
"""

import sys
from unittest import mock

if "--without-tensorflow" in sys.argv:
    sys.modules["tensorflow"] = None  # importing it now fails

import keras
import numpy as np
from checks import array, randomize, weights_of
from models import ids, inputs, make_model

from keras_vanilla import interop, layers, training
from keras_vanilla.decoding import (
    CompiledSearch,
    Terms,
    beam_search,
    greedy_search,
    sample,
)
from keras_vanilla.layers.dense import Dense
from keras_vanilla.models import fake_quantize

B, T, S, N, D, F, V = 2, 7, 5, 5, 10, 13, 19
MASK = np.arange(T) < np.array([[T], [4]])
MEMORY_MASK = np.arange(S) < np.array([[3], [S]])


def layer_outputs():
    draw = np.random.default_rng(0).normal
    inputs = draw(size=(B, T, D)).astype("float32")
    memory = draw(size=(B, S, D)).astype("float32")
    masks = {"inputs_mask": MASK, "memory_mask": MEMORY_MASK}
    nothing = np.zeros((B, T, S), bool)

    embed = layers.TokenEmbedding(V, D)
    tokens = ids((T, 4), T)
    embed(tokens)
    attend = layers.MultiHeadAttention(N, 3, value_dim=2)
    attend(inputs, memory)
    randomize(attend)
    feed_forward = layers.FeedForward(F)
    feed_forward(inputs)
    yield "token_embedding", randomize(embed)(tokens)
    yield (
        "token_embedding/mask",
        embed.compute_mask(keras.ops.convert_to_tensor(tokens)),
    )
    yield "token_embedding/reverse", embed(inputs, reverse=True)
    for layout in ("interleaved", "concatenated", "tensor2tensor"):
        positions = layers.PositionalEncoding(layout=layout)
        yield f"positional_encoding/{layout}", positions(inputs, start_index=11)
    yield "feed_forward", randomize(feed_forward)(inputs)
    outputs, weights = attend(
        inputs,
        memory,
        query_mask=MASK,
        value_mask=MEMORY_MASK,
        use_causal_mask=True,
        return_attention_scores=True,
    )
    yield "attention", outputs
    yield "attention/weights", weights
    yield "attention/nothing", attend(inputs, memory, attention_mask=nothing)
    for first in (False, True):
        encode = layers.EncoderLayer(N, d_ff=F, normalize_first=first)
        decode = layers.DecoderLayer(N, d_ff=F, normalize_first=first)
        encode(inputs)
        decode(inputs, memory)
        yield f"encoder_layer/{first}", randomize(encode)(inputs, mask=MASK)
        yield f"decoder_layer/{first}", randomize(decode)(inputs, memory, **masks)


def model_outputs(model):
    feed = inputs()
    source = feed["source_ids"]
    yield "logits", model(feed)
    for name, weights in model.attention_weights(feed).items():
        yield f"attention_weights/{name}", weights
    cache = model.start_cache(*model.encode(source), 3)
    logits, cache = model.decode_step(feed["target_ids"][:, 0], 0, cache)
    yield "step/0", logits
    yield "step/1", model.decode_step(feed["target_ids"][:, 1], 1, cache)[0]


def through_pytorchs_names(model):
    """The logits of a model that was written in another format and read again."""
    ids = {name: getattr(model, name) for name in ("pad_id", "start_id", "end_id")}
    state = interop.to_pytorch(model)
    again = interop.from_pytorch(state, num_heads=model.num_heads, **ids)
    return again(inputs())


def searches(model):
    source, compiled = inputs()["source_ids"], CompiledSearch(model)
    short = {"max_length": 8}
    yield "ids/greedy", greedy_search(model, source, **short)
    yield "ids/greedy/compiled", compiled(greedy_search, source, **short)
    beams = {"beam_size": 3, **short}
    begun = {"target_prefix": np.array([[7, 9], [5, 0]]), "no_repeat_ngram_size": 2}
    for name, settings in {"beam": beams, "prefix": beams | begun}.items():
        hypotheses, scores = compiled(beam_search, source, **settings)
        yield f"ids/{name}/compiled", hypotheses
        yield f"scores/{name}/compiled", scores
    yield "ids/prefix/eager", beam_search(model, source, **beams, **begun)[0]
    ids = np.array([[[[8, 9]], [[11, -1]]], [[[6, 6]], [[-1, -1]]]])
    terms = Terms(ids, np.array([[1, 2], [1, 0]]), np.zeros((2, 19), bool))
    settings = {**short, "terms": terms}
    yield "ids/terms/eager", beam_search(model, source, beam_size=1, **settings)[0]
    settings["beam_size"] = 3
    yield "ids/terms/compiled", compiled(beam_search, source, **settings)[0]
    yield "ids/sample", sampled_by_the_same_numbers(model, source)
    yield "ids/seeds", what_seeds_do(model, source, compiled)


def sampled_by_the_same_numbers(model, source):
    """Samples with random numbers of NumPy, as each backend draws others."""

    def uniform(shape, dtype, seed):
        return np.random.default_rng(seed).uniform(size=shape).astype(dtype)

    with mock.patch.object(keras.random, "uniform", uniform):
        return sample(model, source, 0.7, top_k=9, top_p=0.9, seed=0, max_length=8)


def what_seeds_do(model, source, compiled):
    """One bool for each promise; ones are asserted, on one backend."""

    def drawn(seed):
        return array(sample(model, source, seed=seed, max_length=5), "int32").tolist()

    def drawn_compiled(seed):
        return compiled(sample, source, seed=seed, max_length=5).tolist()

    once = drawn_compiled(1)
    return [
        once == drawn_compiled(1) == drawn(1),
        once != drawn_compiled(2),
        drawn(None) != drawn(None),
        drawn_compiled(None) != drawn_compiled(None),
    ]


def training_step(model):
    """A step of Adam. Its epsilon is large: rounding must not decide a step's sign."""
    feed = inputs()
    labels = np.pad(feed["target_ids"][:, 1:], ((0, 0), (0, 1)))
    real = labels != 0
    model.compile(
        keras.optimizers.Adam(0.1, epsilon=1e-3),
        training.SmoothedCrossentropy(0.1),
        metrics=[
            training.TokenCrossentropy(),
            training.Perplexity(),
            training.TokenAccuracy(),
        ],
        jit_compile=keras.backend.backend() == "jax",
    )
    yield from (
        (f"trained/{key}", value)
        for key, value in model.train_on_batch(
            feed, labels, real.astype("float32"), return_dict=True
        ).items()
    )
    for path, value in weights_of(model).items():
        yield f"trained/{path}", value


def rounded_training():
    """A step with the roundings of int4 weights in it."""
    width = 44  # so that every matrix has more than 1024 numbers
    hidden = keras.Input((T, width))
    dense, table = Dense(width, "relu"), layers.TokenEmbedding(29, width)
    model = randomize(keras.Model(hidden, table(dense(hidden), reverse=True)))
    fake_quantize(model, "int4")
    x = np.random.default_rng(0).normal(size=(B, T, width)).astype("float32")
    yield "rounded", model(x)
    jit = keras.backend.backend() == "jax"
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit)
    model.train_on_batch(x, np.ones((B, T, 29)))
    for path, value in weights_of(model).items():
        yield f"rounded/{path.split('/', 1)[1]}", value


def main(path):
    one = {"num_encoder_layers": 1, "num_decoder_layers": 1}  # compiles fast
    model = make_model(output_bias=True, **one)
    results = dict(layer_outputs())
    for name, value in weights_of(model).items():
        results[f"weights/{name}"] = value
    results.update(model_outputs(model))
    results["logits/through PyTorch's names"] = through_pytorchs_names(model)
    results.update(searches(model))
    pre_norm = make_model(normalize_first=True, **one)
    results.update(training_step(model))
    results.update(rounded_training())
    results["pre-norm logits"] = pre_norm(inputs())
    results = {
        name: array(value, "float64").astype("float64")
        for name, value in results.items()
    }
    np.savez(path, **results, backend=keras.backend.backend())


if __name__ == "__main__":
    main(sys.argv[1])
