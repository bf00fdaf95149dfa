"""Learning a SentencePiece model from lines of text."""

import bisect
import io
import itertools
import re

import sentencepiece

from keras_vanilla.data.lines import Lines

MODEL_TYPES = ("unigram", "bpe")
NORMALIZATION = "nmt_nfkc"
# SentencePiece's trainer drops lines above 4,192 bytes, and takes minutes on words of
# a hundred thousand letters: it gets lines cut to 1,000 characters, at a space if any.
LINE_PART = re.compile(r".{1,1000}(?=\s|$)|.{1,1000}", re.DOTALL)
# It also drops, without a word, every line that holds its own mark for unknowns.
UNKNOWN_MARK = "\u2585"
SPACE_MARK = "▁"
LEAST = 4 + 256  # special and byte pieces
# Lines of a text, and the size of its vocabulary below each number.
LINES = (40_000, 2_000_000, 20_000_000)
SIZES = (4_000, 8_000, 16_000, 32_000)
# SentencePiece takes 1.6 kB of memory for each line of 70 letters.
MOST_LINES = 2_000_000
LEAST_SIZE = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def fitting_size(lines: Lines) -> int:
    """The size for a text; see `Tokenizer.train` for the table and its reason."""
    by_lines = SIZES[bisect.bisect_right(LINES, len(lines))]
    return max(by_lines, LEAST + 2 * len(_characters(lines)))


def learn_vocabulary(
    lines: Lines, vocabulary_size: int | None, model_type: str
) -> bytes:
    """A SentencePiece model of at most `vocabulary_size` pieces.

    nmt_nfkc, byte fallback, special ids 0 to 3 (pad, unknown, start, end). Every line
    is read, of more than 2 million every n-th; the characters are those of all. The
    same lines give the same bytes.

    Args:
        lines: Lines.
        vocabulary_size: int. Lowered when the text cannot fill it; None means the
            `fitting_size`.
        model_type: "unigram" or "bpe".
    Raises:
        ValueError: if the type is another, there is no text, or the size is too small
            for the special pieces, the byte pieces and the characters.
    """
    if model_type not in MODEL_TYPES:
        raise ValueError(
            f"`model_type` must be one of {MODEL_TYPES}. Received: {model_type!r}"
        )
    if not any(part.strip() for part in _parts(lines)):
        raise ValueError("There is no text to learn a vocabulary from.")
    if vocabulary_size is None:
        vocabulary_size = fitting_size(lines)
    every = -(-len(lines) // MOST_LINES)
    characters = sorted(_characters(lines) - {SPACE_MARK}) if every > 1 else []
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_parts(itertools.islice(lines, 0, None, every)),
            required_chars="".join(characters),
            model_writer=model,
            vocab_size=max(LEAST, vocabulary_size),  # below, no error tells the least
            hard_vocab_limit=False,  # a size that cannot be filled is lowered
            model_type=model_type,
            normalization_rule_name=NORMALIZATION,
            character_coverage=1.0,  # 0.9999 makes bytes of the digits of Multi30k
            byte_fallback=True,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            num_threads=1,  # sums over threads differ from run to run
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(_in_words(str(error), vocabulary_size)) from None
    return model.getvalue()


def _parts(lines):
    for line in lines:
        line = line.replace(UNKNOWN_MARK, " ")
        yield from LINE_PART.findall(line) if len(line) > 1000 else [line]


def _characters(lines):
    """Those that are left after normalisation, which makes "é" of "e" and an accent."""
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=NORMALIZATION)
    characters = set()
    for part in _parts(lines):
        characters.update(normalizer.normalize(part))
    return characters


def _in_words(error, vocabulary_size):
    least = LEAST_SIZE.search(error)
    if least is None:
        return f"SentencePiece cannot learn {vocabulary_size} pieces from this text."
    return (
        "`vocabulary_size` must hold 4 special pieces, 256 byte pieces and every "
        f"character of the text: at least {least[1]}. Received: {vocabulary_size}"
    )
