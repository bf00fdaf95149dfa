"""A toy language pair that a tiny model learns in a minute: words, reversed.

`word_reversal.keras` is that model. `python tests/support/word_reversal.py` trains it
again; then it is a little different, as on every processor.
"""

import random
from pathlib import Path

import keras
import numpy as np

from keras_vanilla.data import ParallelCorpus
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation.translator import Translator

ENGLISH = (
    "zero one two three four five six seven eight nine ten red green blue house tree "
    "river stone small large"
).split()
DUTCH = (
    "nul een twee drie vier vijf zes zeven acht negen tien rood groen blauw huis boom "
    "rivier steen klein groot"
).split()
MOST_WORDS = 9
TRAINED = Path(__file__).with_suffix(".keras")


def english_sentences(count, seed, lengths=range(1, MOST_WORDS + 1)):
    draw = random.Random(seed)
    return [
        " ".join(draw.choices(ENGLISH, k=draw.choice(lengths))) for _ in range(count)
    ]


def dutch(sentence):
    """Word by word, last word first: that needs attention to positions."""
    return " ".join(DUTCH[ENGLISH.index(word)] for word in reversed(sentence.split()))


def corpus(count, seed, lengths=range(1, MOST_WORDS + 1)):
    """Sentences and their translations."""
    sources = english_sentences(count, seed, lengths)
    return ParallelCorpus(sources, map(dutch, sources))


def train_translator():
    """A tiny translator of `english_sentences`, right on nearly all unseen ones."""
    sources = english_sentences(4000, seed=0)
    targets = [dutch(source) for source in sources]
    tokenizer = Tokenizer.train(lines=sources + targets, vocabulary_size=324)
    keras.utils.set_random_seed(0)
    sizes = {"d_model": 64, "num_heads": 4, "d_ff": 128, "max_length": 60}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}  # quick to convert
    model = Transformer(tokenizer.vocabulary_size, **sizes, **layers, dropout=0.0)
    translator = Translator(tokenizer, model)
    _train(model, tokenizer.encode(sources), tokenizer.encode_target(targets))
    return translator.copy()  # without the optimizer


def _train(model, sources, targets):
    labels = padded(targets)
    inputs = {
        "source_ids": padded(sources),
        "target_ids": np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=2),
    }
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, 1140, warmup_target=4e-3, warmup_steps=60
    )
    model.compile(
        keras.optimizers.Adam(schedule),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,  # XLA would compile for longer than it saves
    )
    weights = (labels != 0).astype("float32")
    model.fit(inputs, labels, 100, 30, sample_weight=weights, verbose=0)


def padded(rows, extra=0):
    """Int32 array of rows of ids, `extra` pads behind the longest."""
    padded = np.zeros((len(rows), max(map(len, rows)) + extra), "int32")
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded


if __name__ == "__main__":
    TRAINED.unlink(missing_ok=True)
    train_translator().save(TRAINED)
