"""What a `.tflite` file holds: graphs of static shapes around the search."""

import math
from dataclasses import dataclass

import tensorflow as tf
from keras import ops

from keras_vanilla.export.search_graph import SearchGraph
from keras_vanilla.export.sentencepiece.tokenizer_graph import TextDecoder, TextEncoder


@dataclass(frozen=True)
class Limits:
    """How long texts and searches may be.

    Attributes:
        max_bytes: int. Of a text.
        max_source_length: int. Longest source in tokens, its end included (S).
        max_length: int. The same of the output.
    """

    max_bytes: int
    max_source_length: int
    max_length: int

    @property
    def output_length(self):
        """No output is longer: L, of ids and pads."""
        return min(self.max_source_length + 50, self.max_length)


class TextForm(tf.Module):
    """Maps the bytes of a text to the bytes of its translation.

    Signature `translate`: text uint8 (max_bytes,), UTF-8 that ends with its last byte
    but 0 -> text uint8 (M,), UTF-8 and zeros; ids int32 (L,), the target's and pads;
    score float32 (), the log-probability, in beam search divided by the length penalty.

    A text without a piece gives an empty text, no id and the score 0. One with more
    tokens than the limit gives the same with the score NaN.

    Args:
        tokenizer: Tokenizer.
        model: Transformer that computes in float32.
        limits: Limits.
        search: settings of `SearchGraph`.
    Raises:
        ValueError: if a tokenizer is no unigram model, see `TextEncoder`.
    """

    def __init__(self, tokenizer, model, limits, **search):
        super().__init__()
        self.limits = limits
        self._end_id, self._pad_id = model.end_id, model.pad_id
        self._encode = TextEncoder(
            tokenizer.source_model,
            limits.max_bytes,
            limits.max_source_length,
            self._end_id,
            self._pad_id,
        )
        self._search = _OneSentence(model, limits, **search)
        self._decode = TextDecoder(
            tokenizer.target_model, limits.output_length, self._end_id
        )

    def signatures(self):
        """The functions that the file offers, by name."""
        text = tf.TensorSpec([self.limits.max_bytes], tf.uint8, name="text")
        return {"translate": tf.function(self._translate, [text], autograph=False)}

    def _translate(self, text):
        source_ids, count = self._encode(text)
        empty, too_long = count == 1, count > self.limits.max_source_length
        nothing = empty | too_long
        ids, score = self._search(source_ids, tf.where(nothing, 1, count))
        ids = tf.where(nothing, self._pad_id, ids)
        score = tf.where(empty, 0.0, tf.where(too_long, math.nan, score))
        return {"text": self._decode(ids)[0], "ids": ids, "score": score}


class IdsForm(tf.Module):
    """Maps the ids of one sentence to those of its translation.

    Signature `translate_ids`: source_ids int32 (1, S), ids and pads -> ids int32
    (1, L), the same.

    Args:
        tokenizer: Tokenizer.
        model: Transformer that computes in float32.
        limits: Limits.
        search: settings of `SearchGraph`.
    """

    def __init__(self, tokenizer, model, limits, **search):
        super().__init__()
        self._length = limits.max_source_length
        self._search = _OneSentence(model, limits, **search)
        self._pad_id = model.pad_id

    def signatures(self):
        """The functions that the file offers, by name."""
        ids = tf.TensorSpec([1, self._length], tf.int32, name="source_ids")
        return {"translate_ids": tf.function(self._translate, [ids], autograph=False)}

    def _translate(self, source_ids):
        places = tf.range(1, self._length + 1)
        count = tf.reduce_max(tf.where(source_ids[0] != self._pad_id, places, 1))
        ids, _ = self._search(source_ids[0], count)
        return {"ids": tf.expand_dims(ids, 0)}


class StepsForm(tf.Module):
    """The model's two halves, for apps that search themselves.

    Signature `encode`: source_ids int32 (1, S), ids and pads -> memory_mask int32
    (1, S), and of each decoder layer i decoder_i_cross_key and decoder_i_cross_value.
    Signature `decode_step`: ids int32 (1,), index int32 (), what `encode` gave, and
    decoder_i_self_key and decoder_i_self_value, zeros at first -> logits float32
    (1, V), and the last two for the next step.

    Args:
        tokenizer: Tokenizer.
        model: Transformer that computes in float32.
        limits: Limits.
    """

    def __init__(self, tokenizer, model, limits):
        super().__init__()
        self._model, self._limits = model, limits
        self.weights = [weight.value for weight in self._model.weights]

    def signatures(self):
        """The functions that the file offers, by name."""
        ids = tf.TensorSpec([1, self._limits.max_source_length], tf.int32)
        encode = tf.function(self._encode, autograph=False)
        encode = encode.get_concrete_function(source_ids=ids)
        made = self._start(tf.zeros(ids.shape, tf.int32))
        cache = {
            name: tf.TensorSpec(value.shape, value.dtype)
            for name, value in made.items()
        }
        step = tf.function(self._step, autograph=False).get_concrete_function(
            ids=tf.TensorSpec([1], tf.int32), index=tf.TensorSpec([], tf.int32), **cache
        )
        return {"encode": encode, "decode_step": step}

    def _encode(self, source_ids):
        cache = self._start(source_ids)
        return {name: cache[name] for name in cache if "_self_" not in name}

    def _start(self, source_ids):
        memory, mask = self._model.encode(source_ids)
        length = self._limits.output_length
        cache = self._model.start_cache(memory, mask, length)
        cache["memory_mask"] = tf.cast(mask, tf.int32)  # browsers have no other
        return {name.replace("/", "_"): value for name, value in cache.items()}

    def _step(self, ids, index, **cache):
        names = {name: _in_model(name) for name in cache}
        past = {names[name]: value for name, value in cache.items()}
        past["memory_mask"] = past["memory_mask"] > 0
        logits, past = self._model.decode_step(ids, index, past)
        changed = {name: past[names[name]] for name in names if "_self_" in name}
        return {"logits": logits, **changed}


class _OneSentence(tf.Module):
    """The search for one sentence, in tensors as long as the sentence.

    What a short one costs does not depend on the limits.

    Call arguments:
        source_ids: int32 tensor (S,).
        count: int32 tensor (). How many of them are the sentence, at least 1.
    Returns:
        Int32 tensor (L,), with pads at its end, and float32 tensor (), the score.
    """

    def __init__(self, model, limits, **search):
        super().__init__()
        self._search = SearchGraph(model, limits.max_length, **search)
        self._pads = [model.pad_id] * limits.output_length

    def __call__(self, source_ids, count):
        sentence = tf.slice(source_ids, [0], tf.reshape(count, [1]))
        ids, scores = self._search(tf.expand_dims(sentence, 0))
        return ops.slice_update(tf.constant(self._pads), (0,), ids[0]), scores[0]


def _in_model(name):
    """decoder_0_self_key -> decoder/0/self_key."""
    return "/".join(name.split("_", 2)) if name.startswith("decoder_") else name


FORMS = {"text": TextForm, "ids": IdsForm, "steps": StepsForm}
