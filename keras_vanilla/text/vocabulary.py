"""Learning a SentencePiece model from lines of text."""

import io
import re
from collections.abc import Iterable

import sentencepiece

MODEL_TYPES = ("unigram", "bpe")
# SentencePiece's trainer drops lines above 4,192 bytes, and takes minutes on words of
# a hundred thousand letters: it gets lines cut to 1,000 characters, at a space if any.
LINE_PART = re.compile(r".{1,1000}(?=\s|$)|.{1,1000}", re.DOTALL)
# It also drops, without a word, every line that holds its own mark for unknowns.
UNKNOWN_MARK = "\u2585"
LEAST_SIZE = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def learn_vocabulary(
    lines: Iterable[str], vocabulary_size: int, model_type: str
) -> bytes:
    """A SentencePiece model of at most `vocabulary_size` pieces.

    nmt_nfkc, byte fallback, special ids 0 to 3 (pad, unknown, start, end). Every line
    is read, and the same lines give the same bytes.

    Args:
        lines: strings.
        vocabulary_size: int. Lowered when the text cannot fill it.
        model_type: "unigram" or "bpe".
    Raises:
        ValueError: if the type is another, there is no text, or the size is too small
            for the special pieces, the byte pieces and the characters.
    """
    if model_type not in MODEL_TYPES:
        raise ValueError(
            f"`model_type` must be one of {MODEL_TYPES}. Received: {model_type!r}"
        )
    parts = [part for line in lines for part in _parts(line)]
    if not any(part.strip() for part in parts):
        raise ValueError("There is no text to learn a vocabulary from.")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(parts),
            model_writer=model,
            vocab_size=max(260, vocabulary_size),  # below, no error tells the least
            hard_vocab_limit=False,  # a size that cannot be filled is lowered
            model_type=model_type,
            normalization_rule_name="nmt_nfkc",
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


def _parts(line):
    line = line.replace(UNKNOWN_MARK, " ")
    return LINE_PART.findall(line) if len(line) > 1000 else [line]


def _in_words(error, vocabulary_size):
    least = LEAST_SIZE.search(error)
    if least is None:
        return f"SentencePiece cannot learn {vocabulary_size} pieces from this text."
    return (
        "`vocabulary_size` must hold 4 special pieces, 256 byte pieces and every "
        f"character of the text: at least {least[1]}. Received: {vocabulary_size}"
    )
