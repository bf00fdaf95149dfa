"""The graph of a file that returns all attention weights."""

import json

import tensorflow as tf

from keras_vanilla.export.config import ExportConfig, Limits
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.export.signatures import StepsForm
from keras_vanilla.tokenizer.piece_names import target_names
from keras_vanilla.tokenizer.protocol import TokenizerProtocol
from keras_vanilla.translation import Translator

VOCABULARY = "keras_vanilla_vocabulary"  # name of the metadata entry


class InsideForm(StepsForm):
    """`StepsForm` with a text as input, and with all attention weights as outputs.

    Signature `encode`: text uint8 (max_bytes,), UTF-8 padded with zeros -> the outputs
    of `StepsForm`; source_ids int32 (1, S), padded; count int32 (), the number of ids,
    greater than S if the text is too long; source_spans int32 (S, 2), the first byte
    and the end of each token; and encoder_i float32 (1, N, S, S) for each encoder
    layer i.
    Signature `decode_step`: as in `StepsForm`, plus decoder_i_self float32 (1, N, 1, L)
    and decoder_i_cross (1, N, 1, S) for each decoder layer i.

    Metadata `keras_vanilla_vocabulary`: JSON with "start_id", "pad_id" and "pieces",
    the name of each target id.

    Args:
        translator: Translator that computes in float32.
        limits: Limits.
        config: ExportConfig. Not used, because the page searches.
    Raises:
        ValueError: as in `TokenizerGraph`.
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
        """Additional metadata entries of the file, by name."""
        return {VOCABULARY: self._vocabulary}

    def signatures(self) -> dict:
        """Returns the functions of the file, by name."""
        text = tf.TensorSpec([self._limits.max_bytes], tf.uint8, name="text")
        encode = tf.function(self._encode_text, [text], autograph=False)
        return {**super().signatures(), "encode": encode}

    def _encode_text(self, text):
        ids, count, spans = self.tokenizer.encode(text)
        ids = tf.reshape(ids, [1, self._limits.max_source_length])
        weights = {}
        self._model.encoder(ids, weights)  # the converter merges both
        about = {"source_ids": ids, "count": count, "source_spans": spans}
        return {**self._encode(ids), **about, **_named(weights)}

    def _step(self, ids, index, **cache):
        weights = {}
        outputs = self._stepped(ids, index, cache, weights)
        return {**outputs, **_named(weights)}


def vocabulary_entry(tokenizer: TokenizerProtocol) -> bytes:
    """Returns JSON with the names of all target ids, the start id and the pad id."""
    name = target_names(tokenizer)
    ids = {"start_id": tokenizer.start_id, "pad_id": tokenizer.pad_id}
    pieces = [name(id_) for id_ in range(tokenizer.target_vocabulary_size)]
    return json.dumps({**ids, "pieces": pieces}, ensure_ascii=False).encode()


def _named(weights):
    """Renames weights for a signature: decoder/0/self -> decoder_0_self."""
    return {name.replace("/", "_"): value for name, value in weights.items()}
