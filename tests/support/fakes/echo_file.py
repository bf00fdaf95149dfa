"""A `.tflite` file with a translator's signature that gives back what it is told."""

import functools
import tempfile

import peer_models
import sentencepiece
import tensorflow as tf

from keras_vanilla._operators import use_operators
from keras_vanilla.export.phone_operators import DynamicShapes
from keras_vanilla.export.sentencepiece.tokenizer_graph import (
    TextDecoder,
    TextEncoder,
)
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel

MAX_BYTES, MAX_TOKENS = 131, 40
END_ID = 2  # SentencePiece's default
LINES = [f"Ein Hund rennt {n}. Grüße, {c}!" for n in range(99) for c in "猫éTabcltosx"]


@functools.cache
def content():
    """The file's bytes, made once."""
    options = {"vocab_size": 120, "hard_vocab_limit": False, "character_coverage": 1.0}
    with tempfile.TemporaryDirectory() as folder:
        echo = Echo(peer_models.learn(LINES, num_threads=1, **options))
        with use_operators(DynamicShapes()):
            signatures = {"translate": echo.translate}
            tf.saved_model.save(echo, folder, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["translate"]
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        return converter.convert()


class Echo(tf.Module):
    """Text to ids to text."""

    def __init__(self, model):
        super().__init__()
        end_id = sentencepiece.SentencePieceProcessor(model_proto=model).eos_id()
        self.encode = TextEncoder(
            UnigramModel(model), MAX_BYTES, MAX_TOKENS, end_id, pad_id=0
        )
        self.decode = TextDecoder(UnigramModel(model), MAX_TOKENS, end_id)

    @tf.function(
        input_signature=[tf.TensorSpec([MAX_BYTES], tf.uint8, name="text")],
        autograph=False,
    )
    def translate(self, text):
        ids, count, _ = self.encode(text)
        said, _, _ = self.decode(ids)
        fits = count <= MAX_TOKENS
        return {
            "text": tf.cast(tf.where(fits, tf.cast(said, tf.int32), 0), tf.uint8),
            "ids": ids,
            "score": tf.where(fits, -1.5, float("nan")),
        }
