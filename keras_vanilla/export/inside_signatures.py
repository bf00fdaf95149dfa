"""The graph of a file that shows every attention, for looking inside."""

import json

import tensorflow as tf

from keras_vanilla.export.config import ExportConfig, Limits
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.export.signatures import StepsForm
from keras_vanilla.tokenizer.piece_names import target_names
from keras_vanilla.tokenizer.protocol import TokenizerProtocol
from keras_vanilla.translation import Translator

VOCABULARY = "keras_vanilla_vocabulary"  # of the entry in the file's metadata


class InsideForm(StepsForm):
    """The steps of `StepsForm` from the bytes of a text, with all attention weights.

    Signature `encode`: text uint8 (max_bytes,), UTF-8 and zeros after it -> the outputs
    of `StepsForm`; source_ids int32 (1, S), ids and pads; count int32 (), the number of
    ids, more than S where the text is too long; source_spans int32 (S, 2), where the
    bytes of each token begin and end; and for each encoder layer i encoder_i float32
    (1, N, S, S).
    Signature `decode_step`: as `StepsForm`, and for each decoder layer i
    decoder_i_self float32 (1, N, 1, L) and decoder_i_cross (1, N, 1, S).

    Metadata `keras_vanilla_vocabulary`: JSON with "start_id", "pad_id" and "pieces",
    the name of each target id.

    Args:
        translator: Translator that computes in float32.
        limits: Limits.
        config: ExportConfig; not used: the page searches.
    Raises:
        ValueError: as `TokenizerGraph`.
    """

    def __init__(self, translator: Translator, limits: Limits, config: ExportConfig):
        super().__init__(translator, limits, config)
        self.tokenizer = TokenizerGraph(
            translator.tokenizer,
            limits.max_bytes,
            limits.max_source_length,
            limits.output_length,
        )
        self._vocabulary = vocabulary_entry(translator.tokenizer)

    @property
    def metadata(self) -> dict[str, bytes]:
        """What the file holds besides, by name."""
        return {VOCABULARY: self._vocabulary}

    def signatures(self) -> dict:
        """The file's functions by name."""
        text = tf.TensorSpec([self._limits.max_bytes], tf.uint8, name="text")
        encode = tf.function(self._encode_text, [text], autograph=False)
        return {**super().signatures(), "encode": encode}

    def _encode_text(self, text):
        ids, count, spans = self.tokenizer.encode(text)
        ids = tf.reshape(ids, [1, self._limits.max_source_length])
        weights = {}
        self._model.encoder(ids, weights)  # the converter computes the same once
        about = {"source_ids": ids, "count": count, "source_spans": spans}
        return {**self._encode(ids), **about, **_named(weights)}

    def _step(self, ids, index, **cache):
        weights = {}
        outputs = self._stepped(ids, index, cache, weights)
        return {**outputs, **_named(weights)}


def vocabulary_entry(tokenizer: TokenizerProtocol) -> bytes:
    """JSON with the names of all target ids, and the ids of the start and of pads."""
    name = target_names(tokenizer)
    ids = {"start_id": tokenizer.start_id, "pad_id": tokenizer.pad_id}
    pieces = [name(id_) for id_ in range(tokenizer.target_vocabulary_size)]
    return json.dumps({**ids, "pieces": pieces}, ensure_ascii=False).encode()


def _named(weights):
    """Weights by names that a signature takes: decoder/0/self -> decoder_0_self."""
    return {name.replace("/", "_"): value for name, value in weights.items()}
