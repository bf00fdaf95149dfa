"""Tokenizer graphs as `.tflite` files, run by LiteRT."""

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla._operators import use_operators
from keras_vanilla.export.phone_operators import DynamicShapes


def convert_encoder(encoder, operators=None, **options):
    def call(text):
        return dict(zip(("ids", "count", "spans"), encoder(text), strict=True))

    spec = tf.TensorSpec([encoder.max_bytes], tf.uint8, name="text")
    return _convert(call, spec, operators, **options)


def convert_decoder(decoder, operators=None):
    def call(ids):
        return dict(zip(("text", "length", "ends"), decoder(ids), strict=True))

    spec = tf.TensorSpec([decoder.max_ids], tf.int32, name="ids")
    return _convert(call, spec, operators)


def runner(content):
    return Interpreter(model_content=content, num_threads=1).get_signature_runner()


def encoder_in_litert(encoder, operators=None):
    """A function from a text to its ids, the end last."""
    run = runner(convert_encoder(encoder, operators))

    def encode(text):
        octets = np.zeros(encoder.max_bytes, "uint8")
        octets[: len(text.encode())] = np.frombuffer(text.encode(), "uint8")
        outputs = run(text=octets)
        return outputs["ids"][: int(outputs["count"])].tolist()

    return encode


def decoder_in_litert(decoder, pad_id, operators=None):
    """A function from a list of ids to their text."""
    run = runner(convert_decoder(decoder, operators))

    def decode(ids):
        padded = np.full(decoder.max_ids, pad_id, "int32")
        padded[: len(ids)] = ids
        outputs = run(ids=padded)
        length = int(outputs["length"])
        assert not outputs["text"][length:].any()
        return outputs["text"][:length].tobytes().decode()

    return decode


def _convert(call, spec, operators, **options):
    function = tf.function(call, input_signature=[spec], autograph=False)
    with use_operators(operators or DynamicShapes()):
        function = function.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], tf.Module())
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    for name, value in options.items():
        setattr(converter, name, value)
    return converter.convert()
