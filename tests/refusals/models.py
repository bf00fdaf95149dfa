"""What a Transformer refuses."""

import functools
from functools import cache

import keras
import numpy as np
import tensorflow as tf
from gated_layers import GatedEncoderLayer
from models import SIZES, inputs, make_model
from refusal import Refusal

from keras_vanilla import Transformer
from keras_vanilla.layers import EncoderLayer
from keras_vanilla.models import fake_quantize
from keras_vanilla.training import SmoothedCrossentropy

ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}
# Each matrix has more than 1024 numbers, which the converter needs to quantise it.
WIDE = {**ONE_LAYER, "source_vocabulary_size": 37, "d_model": 44, "num_heads": 4}
SIZE_NAMES = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "d_model",
    "num_heads",
    "d_ff",
    "decoder_d_ff",
    "num_encoder_layers",
    "num_decoder_layers",
    "max_length",
)
SETTINGS = [  # arguments, and a pattern of the error
    *(({name: 0}, f"`{name}` must be .* 1.* Received: 0") for name in SIZE_NAMES),
    ({"max_length": 2**31}, "`max_length` must be below 2..31. Received: 21474836"),
    ({"num_decoder_layers": 1001}, "`num_decoder_layers` .* from 1 to 1000. Rec"),
    ({"max_length": 2.5}, "`max_length` must be an integer .* Received: 2.5"),
    ({"max_length": float("nan")}, "`max_length` must be .* Received: nan"),
    ({"end_id": -1}, "`end_id` .* Received: -1"),
    ({"pad_id": 3}, "`pad_id` and `end_id` .*pad_id=end_id=3"),
    ({"num_heads": 3}, "divisible.*d_model=10, num_heads=3"),
    ({"d_model": 7, "num_heads": 7}, "even width.*Received: d_model=7"),
    ({"target_vocabulary_size": 23}, "one size.*=19, target_vocabulary_size=23"),
    ({"position_layout": "sideways"}, "'interleaved', 'concatenated'.*'sideways'"),
    ({"forbidden_ids": [19]}, "`forbidden_ids` .* from 0 to 18. Received: 19"),
    ({"forbidden_ids": 7}, "`forbidden_ids` must be a list of ids. Received: 7"),
    ({"forbidden_ids": [3]}, "`forbidden_ids` .*end_id=3"),
    ({"encoder_layer": 3}, "class or function that makes a layer"),
    ({"encoder_layer": GatedEncoderLayer(4, d_ff=8)}, "makes a layer"),
    ({"encoder_layer": functools.partial(GatedEncoderLayer, d_ff=8)}, "makes a layer"),
    ({"decoder_layer": "gated_layers>Gone"}, "`decoder_layer` is not registered"),
]


class Unregistered(EncoderLayer):
    pass


@cache
def model():
    made = make_model(**ONE_LAYER)
    made.compile("sgd", SmoothedCrossentropy(), micro_batches=2, run_eagerly=True)
    return made


def started(length=3):
    return model().start_cache(*model().encode(inputs()["source_ids"]), length)


def wrong_id(side, wrong):
    feed = {name: x.copy() for name, x in inputs().items()}
    feed[f"{side}_ids"][1, 2] = wrong
    calls = [lambda: model()(feed), lambda: model().attention_weights(feed)]
    if side == "source":
        return [*calls, lambda: model().encode(feed["source_ids"])]
    return [*calls, lambda: model().decode_step(np.array([4, wrong]), 0, started())]


def ragged(method, part):
    """Data of which one part is ragged."""

    def call():
        rows = tf.ragged.constant([[5, 3, 1], [4]])
        ids = rows.to_tensor()
        weights = tf.cast(ids != 0, "float32")
        data = {
            "source_ids": ids,
            "labels": ids,
            "weights": weights,
        }
        data[part] = tf.cast(rows, data[part].dtype)
        x = {"source_ids": data["source_ids"], "target_ids": ids}
        getattr(model(), method)(x, data["labels"], sample_weight=data["weights"])

    return call


def one_source_for_two():
    cache = started()
    model().decode_step(np.ones((3,), "int32"), 0, cache)


def quantised(layer):
    def call():
        places = keras.Input((5, 44))
        fake_quantize(keras.Model(places, layer(places)), "int8")

    return call


ROWS = [
    *(
        Refusal(str(given), lambda given=given: Transformer(**SIZES | given), pattern)
        for given, pattern in SETTINGS
    ),
    Refusal(
        "unregistered layer",
        lambda: Transformer(**SIZES, encoder_layer=Unregistered),
        "decorate .*Unregistered with @keras",
    ),
    Refusal(
        "quantize",
        lambda: model().quantize("int8"),
        r"removed in 0\.8\.0: use `Translator\.save",
        NotImplementedError,
    ),
    Refusal(
        "preset",
        lambda: Transformer.from_preset("huge", source_vocabulary_size=11),
        "'tiny', 'small', 'base', 'big', 'phone', .*. Received: 'huge'",
    ),
    Refusal(
        "argument of preset",
        lambda: Transformer.from_preset("tiny", source_vocabulary_size=50, droput=0.5),
        "'droput'. Did you mean 'dropout'",
        TypeError,
    ),
    *(
        Refusal(f"{side} id {wrong}", call, f"{side} id .* 19. Received: {wrong}\\b")
        for side in ("source", "target")
        for wrong in (-1, 19)
        for call in wrong_id(side, wrong)
    ),
    *(
        Refusal(
            f"step {index}",
            lambda index=index: model().decode_step(np.array([4, 5]), index, started()),
            f"holds 3. Received: index={index}",
        )
        for index in (-1, 3)
    ),
    Refusal("list", lambda: model()([*inputs().values()]), "takes a dict .* a list"),
    Refusal(
        "one source for two targets",
        lambda: model()(inputs() | {"source_ids": np.ones((1, 5), "int32")}),
        r"same batch. Received: shapes \(2, 7, 10\) and \(1, 5, 10\)",
    ),
    Refusal("step of three rows", one_source_for_two, "must have the same batch"),
    *(
        Refusal(
            f"ragged {part} in {method}",
            ragged(method, part),
            "A Transformer takes no ragged tensors: pad",
        )
        for method in ("fit", "evaluate", "train_on_batch")
        for part in ("source_ids", "labels", "weights")
    ),
    Refusal(
        "ragged source",
        lambda: model().encode(tf.ragged.constant([[5, 3, 1], [4]])),
        "TokenEmbedding takes no ragged",
    ),
    Refusal(
        "rounding in bfloat16",
        lambda: fake_quantize(make_model(**WIDE, dtype="mixed_bfloat16"), "int8"),
        "in_float32.*Received: .* mixed_bfloat16",
    ),
    Refusal(
        "rounding to int2", lambda: fake_quantize(model(), "int2"), "'int8'.*'int2'"
    ),
    *(
        Refusal(f"rounding of {type(layer)}", quantised(layer), "Received: mine/kernel")
        for layer in (
            keras.layers.EinsumDense("abc,cd->abd", (5, 53), name="mine"),
            keras.layers.Dense(53, name="mine"),
        )
    ),
]
