"""What `phone_speed.py` compares: files with the same weights, and texts for them.

The weights are drawn at random, and so are the words unless lines are given: only
lengths make a translation slower or faster. Those are forced: a search says as many
tokens as its source has.
"""

import contextlib
from unittest import mock

import numpy as np
import sentencepiece
from phone_peers import PEER_FOLDER, TEXT_FILE, TOKENIZER

VOCABULARY_SIZES = {"tiny": 1000, "small": 8000, "base": 32000}
MADE_LINES = 100_000
USUAL_LENGTH, USUAL_BYTES = 128, 512  # what `export.tflite` takes by itself
CERTAIN = 1e9


def make(folder, preset, quantize, beam_sizes, limits, lines):
    """Writes the files that are not there yet.

    Args:
        folder: Path. The tokenizer goes to the folder it is in.
        preset: str. Or the path of a translator with one vocabulary.
        quantize: "int8" or None.
        beam_sizes: list of int.
        limits: dict from `limits`.
        lines: list of str that the tokenizer learns from.
    """
    paths = {
        beam_size: folder / TEXT_FILE.format(beam_size) for beam_size in beam_sizes
    }
    missing = {size: path for size, path in paths.items() if not path.exists()}
    if not missing:
        return
    from keras_vanilla import export
    from keras_vanilla.interop import to_ctranslate2

    folder.mkdir(parents=True, exist_ok=True)
    translator = _translator(folder.parent / TOKENIZER, preset, lines)
    if not (folder / PEER_FOLDER).exists():
        to_ctranslate2(translator, folder / PEER_FOLDER, quantize)
    for size, path in missing.items():  # int8 of random weights may say another word
        settings = {"quantize": quantize, "beam_size": size, "check": "structure"}
        with forced_lengths():
            export.tflite(translator, path, **settings, **limits)


def limits(longest):
    """The usual limits of an exported file, or as many times them as are needed.

    Args:
        longest: int. Tokens of the longest text.
    """
    times = -(-longest // USUAL_LENGTH)
    return {
        "max_bytes": times * USUAL_BYTES,
        "max_source_length": times * USUAL_LENGTH,
        "max_length": times * USUAL_LENGTH,
    }


def text_of(folder, length, max_bytes, lines):
    """A text of so many tokens, its end included.

    Args:
        folder: Path, as `make` takes it.
        length: int.
        max_bytes: int. The text is no longer.
        lines: list of str, whose words it takes.
    """
    path = str(folder.parent / TOKENIZER)
    tokenizer = sentencepiece.SentencePieceProcessor(path)
    words = " ".join(lines[:1000]).split()
    for first in range(len(words)):
        for last in range(first + 1, first + length):
            text = " ".join(words[first:last])
            pieces = len(tokenizer.encode(text))
            if pieces == length - 1 and len(text.encode()) <= max_bytes:
                return text
            if pieces >= length:
                break
    raise ValueError(f"No words of the text make {length} tokens in {max_bytes} bytes")


def made_lines():
    """Lines of words of syllables, a few of them frequent and most rare."""
    draw = np.random.default_rng(0)
    syllables = [
        c + v + end for c in "bdfgklmnprst" for v in "aeiou" for end in ("", "n")
    ]
    words = ["".join(draw.choice(syllables, n)) for n in draw.integers(1, 4, 150_000)]
    frequencies = np.arange(10, len(words) + 10) ** -0.8
    shape = MADE_LINES, 12
    drawn = draw.choice(len(words), shape, p=frequencies / frequencies.sum())
    return [" ".join(words[word] for word in line) for line in drawn]


def _translator(path, preset, lines):
    """An untrained one, the same each time."""
    import keras

    from keras_vanilla import Transformer, Translator
    from keras_vanilla.tokenizer import Tokenizer

    if preset.endswith(".keras"):
        translator = Translator.load(preset).in_float32()  # else export copies it
        path.write_bytes(translator.tokenizer.source_model)
        return translator
    if not path.exists():
        size = VOCABULARY_SIZES[preset]
        learnt = Tokenizer.train(lines=lines, vocabulary_size=size)
        path.write_bytes(learnt.source_model)
    tokenizer = Tokenizer(path.read_bytes())
    keras.utils.set_random_seed(0)
    model = Transformer.from_preset(
        preset, source_vocabulary_size=tokenizer.vocabulary_size
    )
    return Translator(tokenizer, model)


@contextlib.contextmanager
def forced_lengths():
    """Within the block, an end is certain where the source ended, impossible before."""
    from keras_vanilla import Transformer

    step = _forced(Transformer.decode_step)
    with mock.patch.object(Transformer, "decode_step", step):
        yield


def _forced(step):
    from keras import ops

    def forced(model, ids, index, cache, *others):
        logits, cache = step(model, ids, index, cache, *others)
        length = ops.sum(ops.cast(cache.memory_mask[:1], "int32"))
        end = ops.where(ops.equal(index + 1, length), CERTAIN, -CERTAIN)
        is_end = np.arange(logits.shape[-1]) == model.end_id
        return logits + end * is_end.astype("float32"), cache

    return forced
