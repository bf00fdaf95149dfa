"""The graphs of `.tflite` files, which run the search with static shapes."""

import json
import math

import keras
import numpy as np
from keras import ops

from keras_vanilla._operators import current_operators, slice_update
from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.search_graph import SearchGraph
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.tokenizer.piece_names import source_names, target_names
from keras_vanilla.tokenizer.protocol import TokenizerProtocol, tokens_before_text
from keras_vanilla.translation import Translator
from keras_vanilla.translation.piece_texts import is_known, loop_guard

VOCABULARY = "keras_vanilla_vocabulary"  # name of the metadata entry


class TextForm:
    """Maps the bytes of a text to the bytes of its translation.

    Signature `translate`: text uint8 (max_bytes,), UTF-8 padded with zeros -> text
    uint8 (M,), the same; ids int32 (L,), padded; score float32 (), the log-probability,
    in beam search divided by the length normalization; and for `doubts_of`, float32 (),
    probability, the geometric mean of the probabilities of `ids`, and known, the share
    of the source's tokens that are pieces of the vocabulary.

    A text without pieces results in an empty text, padding and a score of 0. A text
    with more tokens than the limit results in the same with a score of NaN.

    The description's `outputs` add values for every token of `ids`:

        "alignment"     text_ends int32 (L,), the end of its bytes in the output text;
                        source_spans int32 (L, 2), the start and end of the bytes of the
                        source token that it attends to most, see `AttendedSource`;
                        zeros for the end and padding
        "confidence"    text_ends; confidence float32 (L,), its probability; 0 for pads

    Args:
        translator: Translator that computes in float32.
        description: Description of the file.
    Raises:
        ValueError: as in `TokenizerGraph`.
    """

    def __init__(self, translator: Translator, description: Description):
        model, outputs = translator.model, tuple(description.outputs)
        self._outputs, self._end_id, self._pad_id = outputs, model.end_id, model.pad_id
        self._max_bytes = description.max_bytes
        self._max_source_tokens = description.max_source_tokens
        self._max_output_tokens = description.max_output_tokens
        self._tokenizer = _tokenizer_graph(translator, description)
        self._before_text = tokens_before_text(translator.tokenizer)
        decoding = description.decoding.of_vocabulary(
            lambda: loop_guard(translator.tokenizer)
        )
        self._decoding = decoding
        self._unknown_ids, self._ignored_ids = _uncounted(translator.tokenizer)
        self._search = SearchGraph(
            model,
            decoding,
            self._max_output_tokens,
            return_notes=bool(outputs),
            first_source=self._before_text if "alignment" in outputs else None,
        )

    def signatures(self) -> dict:
        """Returns each function of the file and its inputs, KerasTensors, by name."""
        text = keras.KerasTensor((self._max_bytes,), "uint8")
        return {"translate": (self._translate, {"text": text})}

    def _translate(self, text):
        source_ids, count, spans = self._tokenizer.encode(text)
        empty = count <= self._before_text + 1  # a language code and an end
        too_long = count > self._max_source_tokens
        skipped = empty | too_long
        ids, score, notes = self._searched(source_ids, ops.where(skipped, 1, count))
        ids = ops.where(skipped, self._pad_id, ids)
        score = ops.where(empty, 0.0, ops.where(too_long, math.nan, score))
        translation, _, ends = self._tokenizer.decode(ids)
        about_tokens = self._about_tokens(ids, ends, spans, notes)
        for_doubts = {
            "probability": self._probability(ids, score),
            "known": self._known(source_ids, count),
        }
        outputs = {"text": translation, "ids": ids, "score": score}
        return {**outputs, **for_doubts, **about_tokens}

    def _probability(self, ids, score):
        """The geometric mean of the probabilities of the tokens."""
        length = ops.sum(ops.cast(ids != self._pad_id, "float32"))
        return ops.exp(self._decoding.mean_log_probs(score, ops.maximum(length, 1.0)))

    def _known(self, source_ids, count):
        """The share of the source's tokens that the vocabulary has."""
        is_unknown, is_ignored = (
            ops.any(ops.expand_dims(source_ids, 1) == np.array(ids, "int32"), axis=1)
            for ids in (self._unknown_ids, self._ignored_ids)
        )
        places = ops.arange(self._max_source_tokens, dtype="int32")
        of_text = (places >= self._before_text) & (places < count - 1) & ~is_ignored
        unknown, number = (
            ops.sum(ops.cast(each, "float32"))
            for each in (of_text & is_unknown, of_text)
        )
        return 1.0 - unknown / ops.maximum(number, 1.0)

    def _searched(self, source_ids, count):
        """Searches, with tensors as long as the sentence if shapes may depend on it.

        Returns ids (L,), padded; the score; and the notes (L,) of each token.
        """
        size = current_operators().size_for(count, self._max_source_tokens)
        sentence = ops.slice(source_ids, [0], [size])
        ids, scores, *notes = self._search(ops.expand_dims(sentence, 0))
        pads = np.full(self._max_output_tokens, self._pad_id, "int32")
        ids, score = slice_update(pads, (0,), ids[0]), scores[0]
        padded = {
            name: slice_update(ops.zeros(pads.shape, values.dtype), (0,), values[0])
            for name, values in (notes[0] if notes else {}).items()
        }
        return ids, score, padded

    def _about_tokens(self, ids, ends, spans, notes):
        """Computes the additional `outputs`."""
        real = ids != self._pad_id
        results = {"text_ends": ends} if self._outputs else {}
        if "alignment" in self._outputs:
            has_text = ops.expand_dims(real & (ids != self._end_id), 1)
            attended = current_operators().gather(spans, notes["attended"])
            results["source_spans"] = ops.where(has_text, attended, 0)
        if "confidence" in self._outputs:
            probabilities = ops.exp(notes["log_probs"])
            results["confidence"] = ops.where(real, probabilities, 0.0)
        return results


class StepsForm:
    """The encoder and one step of the decoder, for apps that implement the search.

    Signature `encode`: source_ids int32 (1, S), padded -> memory_mask int32 (1, S), and
    decoder_i_cross_key and decoder_i_cross_value for each decoder layer i.
    Signature `decode_step`: ids int32 (1,), index int32 (), the outputs of `encode`,
    and decoder_i_self_key and decoder_i_self_value, initially zeros -> logits float32
    (1, V), and new values of the last two for the next step.

    Args:
        translator: Translator that computes in float32.
        description: Description of the file.
    """

    _shows_weights = False

    def __init__(self, translator: Translator, description: Description):
        self._model, self._max_bytes = translator.model, description.max_bytes
        self._max_source_tokens = description.max_source_tokens
        self._max_output_tokens = description.max_output_tokens
        # Not in `signatures`: what runs there becomes part of a TensorFlow graph.
        start = self._start(ops.zeros((1, self._max_source_tokens), "int32"))
        self._cache = _of_memory(start) | _named_by_layer(start.past)

    def signatures(self) -> dict:
        """Returns each function of the file and its inputs, KerasTensors, by name."""
        ids = keras.KerasTensor((1, self._max_source_tokens), "int32")
        step = {
            "ids": keras.KerasTensor((1,), "int32"),
            "index": keras.KerasTensor((), "int32"),
        }
        for name, value in self._cache.items():
            step[name] = keras.KerasTensor(value.shape, value.dtype)
        return {
            "encode": (self._encode, {"source_ids": ids}),
            "decode_step": (self._step, step),
        }

    def _encode(self, source_ids):
        return _of_memory(self._start(source_ids))

    def _start(self, source_ids):
        memory, mask = self._model.encode(source_ids)
        return self._model.start_cache(memory, mask, self._max_output_tokens)

    def _step(self, ids, index, **cache):
        mask = cache.pop("memory_mask") > 0
        layers = [
            {
                name.removeprefix(prefix): value
                for name, value in cache.items()
                if name.startswith(prefix)
            }
            for prefix in map(_LAYER.format, range(self._model.num_decoder_layers))
        ]
        cache = self._model.decoder.cache_of(layers, mask)
        weights = {} if self._shows_weights else None
        logits, cache = self._model.decode_step(ids, index, cache, weights)
        return {"logits": logits, **_named_by_layer(cache.past), **_named(weights)}


class InsideForm(StepsForm):
    """`StepsForm` with a text as input, and with all attention weights as outputs.

    Signature `encode`: text uint8 (max_bytes,), UTF-8 padded with zeros -> the outputs
    of `StepsForm`; source_ids int32 (1, S), padded; count int32 (), the number of ids,
    greater than S if the text is too long; source_spans int32 (S, 2), the first byte
    and the end of each token; and encoder_i float32 (1, N, S, S) for each encoder
    layer i.
    Signature `decode_step`: as in `StepsForm`, plus decoder_i_self float32 (1, N, 1, L)
    and decoder_i_cross (1, N, 1, S) for each decoder layer i.

    The file has a `vocabulary_entry`.

    Args:
        translator: Translator that computes in float32.
        description: Description of the file.
    Raises:
        ValueError: as in `TokenizerGraph`.
    """

    _shows_weights = True

    def __init__(self, translator: Translator, description: Description):
        super().__init__(translator, description)
        self._tokenizer = _tokenizer_graph(translator, description)

    def signatures(self) -> dict:
        """Returns each function of the file and its inputs, KerasTensors, by name."""
        text = keras.KerasTensor((self._max_bytes,), "uint8")
        encode = self._encode_text, {"text": text}
        return {**super().signatures(), "encode": encode}

    def _encode_text(self, text):
        ids, count, spans = self._tokenizer.encode(text)
        ids = ops.expand_dims(ids, 0)
        weights = {}
        self._model.encoder(ids, weights)  # the converter merges both
        about = {"source_ids": ids, "count": count, "source_spans": spans}
        return {**self._encode(ids), **about, **_named(weights)}


def _uncounted(tokenizer):
    """The source ids of unknown text, and those of parts that do not count."""
    name = source_names(tokenizer)
    known = [is_known(name(id_)) for id_ in range(tokenizer.vocabulary_size)]
    unknown = [id_ for id_, value in enumerate(known) if value is False]
    ignored = [id_ for id_, value in enumerate(known) if value is None]
    return [*unknown, tokenizer.unknown_id], ignored or [-1]


def _tokenizer_graph(translator, description):
    """The tokenizer, for texts and translations of the longest lengths."""
    return TokenizerGraph(
        translator.tokenizer,
        description.max_bytes,
        description.max_source_tokens,
        description.max_output_tokens,
    )


def vocabulary_entry(tokenizer: TokenizerProtocol) -> bytes:
    """Returns JSON with "start_id", "pad_id" and "pieces", the names of target ids."""
    name = target_names(tokenizer)
    ids = {"start_id": tokenizer.start_id, "pad_id": tokenizer.pad_id}
    pieces = [name(id_) for id_ in range(tokenizer.target_vocabulary_size)]
    return json.dumps({**ids, "pieces": pieces}, ensure_ascii=False).encode()


def _named(weights):
    """Renames weights for a signature: decoder/0/self -> decoder_0_self."""
    return {name.replace("/", "_"): value for name, value in (weights or {}).items()}


_LAYER = "decoder_{}_"  # prefix of the names of a layer's tensors


def _of_memory(cache):
    """Returns the constant tensors of a cache, by their names in a file."""
    mask = ops.cast(cache.memory_mask, "int32")  # browsers do not support booleans
    return {"memory_mask": mask, **_named_by_layer(cache.fixed)}


def _named_by_layer(layers):
    """Returns the tensors of a list of dicts, by their names in a file."""
    return {
        _LAYER.format(i) + name: value
        for i, layer in enumerate(layers)
        for name, value in layer.items()
    }


FORMS = {"text": TextForm, "steps": StepsForm, "inside": InsideForm}  # of each form
