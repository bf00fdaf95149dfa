"""SentencePiece's normalisation of a text, in a TensorFlow graph."""

import numpy as np
import tensorflow as tf
from keras import ops

from keras_vanilla.export.normalization_rules import (
    MALFORMED,
    SPACE,
    NormalizationRules,
)
from keras_vanilla.export.unigram_model import UnigramModel
from keras_vanilla.export.utf8 import character_lengths


class Normalizer:
    """Maps UTF-8 bytes to the bytes that SentencePiece cuts into pieces.

    Args:
        model: UnigramModel.
        max_bytes: int. Length of the texts.
    Call arguments:
        octets: int32 tensor (max_bytes,), bytes from 0 to 254; zeros follow the text.
        length: int32 tensor (). How many of them are text.
    Returns:
        Uint8 tensor (capacity,), and int32 tensor (), how many bytes of it are the
        normalised text; anything may follow them.
    """

    def __init__(self, model: UnigramModel, max_bytes: int):
        self._rules = NormalizationRules(model)
        self._max_bytes = max_bytes
        self._strips = model.spec.remove_extra_whitespaces
        self._prefix = model.space if model.spec.add_dummy_prefix else b""
        self._longest = int(self._rules.shapes[:, 0].max())  # that a rule puts
        # All that rules put, and room to write the longest after it.
        self.capacity = max_bytes * self._rules.growth + self._longest
        self.capacity += len(self._prefix)

    def __call__(self, octets, length):
        rows = self._rows(octets)
        # int8 is the smallest type DYNAMIC_UPDATE_SLICE takes; a loop copies its state.
        text = tf.cast(tf.pad(octets, [[0, self._longest]]), tf.int8)

        def step(place, written, solid, spaced, output):
            """Writes what the rule at one place puts; `solid` bytes end in no space."""
            rule, taken, start, size, leading, last, ends_spaced = tf.unstack(
                tf.gather(rows, place)
            )
            skipped = leading * spaced
            put = self._put(text, rule, place, start + skipped)
            return (
                place + taken,
                written + size - skipped,
                tf.where(last > 0, written + last - skipped, solid),
                tf.where(size > 0, ends_spaced, spaced),
                ops.slice_update(output, [written], put),
            )

        state = self._start(length)
        state = tf.while_loop(lambda place, *_: place < length, step, state)
        _, _, solid, _, output = state
        return tf.cast(output, tf.uint8), tf.where(length > 0, solid, 0)

    def _start(self, length):
        """The loop's state: the prefix is written, and is a space to be stripped."""
        prefix = np.frombuffer(self._prefix, "int8")
        room = self.capacity - len(prefix)
        # Zeros alone would lie in the file.
        output = tf.concat([prefix, tf.fill([room], tf.cast(0 * length, tf.int8))], 0)
        solid = 0 if self._strips else len(prefix)
        state = (0, len(prefix), solid, int(self._strips))
        return (*map(tf.constant, state), output)

    def _put(self, text, rule, place, start):
        """Int8 (longest,): what a rule puts, and whatever follows it."""
        texts = np.pad(self._rules.octets, [0, self._longest]).view("int8")
        return tf.where(
            (rule > MALFORMED) & (rule < SPACE),
            tf.slice(text, [place], [self._longest]),
            tf.slice(texts, [start], [self._longest]),
        )

    def _rows(self, octets):
        """Int32 (max_bytes, 7): each place's rule, bytes it takes, start and shape."""
        rules = character_lengths(octets)
        taken = tf.maximum(rules, 1)
        for trie in self._rules.tries:
            found, lengths = self._longest_keys(trie, octets)
            taken = tf.where(found > rules, lengths, taken)
            rules = tf.maximum(found, rules)
        starts = tf.gather(self._rules.starts, rules)
        shapes = tf.cast(tf.gather(self._rules.shapes, rules), tf.int32)
        return tf.concat([tf.stack([rules, taken, starts], axis=1), shapes], axis=1)

    def _longest_keys(self, trie, octets):
        """The value and length of the trie's longest string at each place, or zeros."""
        nothing = tf.zeros([self._max_bytes], tf.int32)
        following = tf.pad(octets, [[0, self._rules.longest_key + 1]])

        def step(depth, slots, values, lengths):
            octets = tf.slice(following, [depth], [self._max_bytes])
            slots = trie.child(slots, octets)
            found = trie.values(slots)
            return (
                depth + 1,
                slots,
                tf.where(found > 0, found, values),
                tf.where(found > 0, depth + 1, lengths),
            )

        _, _, values, lengths = tf.while_loop(
            lambda depth, slots, *_: tf.reduce_any(slots != trie.dead),
            step,
            (tf.constant(0), tf.fill([self._max_bytes], trie.root), nothing, nothing),
        )
        return values, lengths
