"""SentencePiece models, and the special ids around their pieces."""

import itertools
from typing import NamedTuple

import sentencepiece


class SpecialIds(NamedTuple):
    """Named as the Tokenizer's arguments."""

    pad_id: int
    unknown_id: int
    start_id: int
    end_id: int

    def __str__(self):
        return ", ".join(f"{name}={id_}" for name, id_ in self._asdict().items())


def load_model(model: bytes, name) -> sentencepiece.SentencePieceProcessor:
    """The processor of a serialised model; errors call the model `name`."""
    if not isinstance(model, bytes):
        raise TypeError(f"{name} must be bytes. Received: {type(model).__name__}")
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError:
        raise ValueError(
            f"{name} is not a SentencePiece model. Received: {len(model)} bytes"
        ) from None
    return processor


def special_ids(processors: dict) -> SpecialIds:
    """The ids that models of one tokenizer share.

    They are the models' own. Those the models have not follow, in the order of
    `SpecialIds`, the last piece of the largest model: free on every side.

    Args:
        processors: what to call each model in an error -> its processor.
    Raises:
        ValueError: if the models have different ones, or one id for two of them.
    """
    own = {
        name: SpecialIds(each.pad_id(), each.unk_id(), each.bos_id(), each.eos_id())
        for name, each in processors.items()
    }
    if len(set(own.values())) > 1:
        raise ValueError(
            f"{' and '.join(map(str, own))} must have the same special ids (-1: none). "
            f"Received: {' and '.join(map(str, own.values()))}"
        )
    (name, ids), *_ = own.items()
    given = [id_ for id_ in ids if id_ >= 0]
    if len(set(given)) < len(given):
        raise ValueError(f"{name} has one id for two special pieces. Received: {ids}")
    free = itertools.count(max(each.get_piece_size() for each in processors.values()))
    return SpecialIds(*(next(free) if id_ < 0 else id_ for id_ in ids))
