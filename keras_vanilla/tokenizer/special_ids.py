"""SentencePiece models, and the special ids around their pieces."""

import itertools
from typing import NamedTuple

import sentencepiece


class SpecialIds(NamedTuple):
    """The special ids of a tokenizer, named like the arguments of `Tokenizer`."""

    pad_id: int
    unknown_id: int
    start_id: int
    end_id: int


def load_model(model: bytes, name: object) -> sentencepiece.SentencePieceProcessor:
    """Loads the processor of a serialised model; errors call the model `name`.

    Raises:
        TypeError: if the model is not bytes.
        ValueError: if the bytes are not a SentencePiece model.
    """
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


def special_ids(
    processors: dict[object, sentencepiece.SentencePieceProcessor],
) -> SpecialIds:
    """The special ids that the models of one tokenizer share.

    Special ids that the models do not define follow the last piece of the largest
    model, in the order of `SpecialIds`.

    Args:
        processors: dict of each model's name for errors -> its processor.
    Raises:
        ValueError: if the models have different special ids, or two special ids of a
            model are the same.
    """
    model_ids = {
        name: SpecialIds(each.pad_id(), each.unk_id(), each.bos_id(), each.eos_id())
        for name, each in processors.items()
    }
    if len(set(model_ids.values())) > 1:
        raise ValueError(
            f"{' and '.join(map(str, model_ids))} must have the same special ids "
            f"(-1: none). Received: {' and '.join(map(str, model_ids.values()))}"
        )
    (name, ids), *_ = model_ids.items()
    used = [id_ for id_ in ids if id_ >= 0]
    if len(set(used)) < len(used):
        raise ValueError(
            f"{name} has the same id for two special pieces. Received: {ids}"
        )
    free = itertools.count(max(each.get_piece_size() for each in processors.values()))
    return SpecialIds(*(next(free) if id_ < 0 else id_ for id_ in ids))
