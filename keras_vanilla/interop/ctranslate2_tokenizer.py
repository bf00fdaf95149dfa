"""Converts CTranslate2's vocabularies to our tokenizers, and back."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_vanilla.interop.files.ctranslate2_file import CTranslate2Model
from keras_vanilla.interop.marian_tokenizer import model_of_tokens
from keras_vanilla.interop.vocabularies import (
    END,
    PAD,
    UNKNOWN,
    check_tokens,
    filled_up,
    vocabularies,
)
from keras_vanilla.tokenizer import MarianTokenizer, Tokenizer
from keras_vanilla.tokenizer.marian_vocabulary import CODE

BLANK = "<blank>"  # the pad of OpenNMT-py
SHARED_FILE = "sentencepiece.model"
FILES = "source.spm", "target.spm"
PIECE = ModelProto.SentencePiece


def tokenizer_from_ctranslate2(
    folder: Path, content: CTranslate2Model, from_zeros: bool
) -> Tokenizer:
    """Reads the tokenizer of a model folder; its ids are those of the vocabularies.

    A pad is added after the last token if the vocabularies have none. Text is
    segmented by the SentencePiece models `source.spm` and `target.spm`, or
    `sentencepiece.model` for both languages, in the folder or its parent.

    Args:
        folder: path.
        content: CTranslate2Model.
        from_zeros: bool. Whether the decoder starts with a vector of zeros, as in
            Marian, whose texts may begin with a language code.
    Raises:
        FileNotFoundError: if there is no SentencePiece model.
        ValueError: if a vocabulary does not match its SentencePiece model, a token
            occurs twice, or special tokens are missing or have two ids.
    """
    sides = [content.source_vocabulary, content.target_vocabulary]
    check_tokens(folder, sides)
    config = content.config
    sides, pad = _with_pad(sides)
    start = pad if from_zeros else config["decoder_start_token"]
    special = {
        "pad_id": _id_of(folder, sides, pad),
        "unknown_id": _id_of(folder, sides, config["unk_token"]),
        "start_id": _id_of(folder, sides[1:], start),
        "end_id": _id_of(folder, sides, config["eos_token"]),
    }
    names = {"pad_id": PAD, "unknown_id": UNKNOWN, "end_id": END}
    for side in sides:
        for name, token in names.items():
            side[special[name]] = token
    check_tokens(folder, sides)
    paths = _models(folder)
    with contextlib.suppress(ValueError):  # special ids that no `Tokenizer` has
        plain = Tokenizer.from_files(*paths)
        is_plain = plain.get_config() == special
        if is_plain and vocabularies(plain, "A CTranslate2 model") == sides:
            return plain
    models = [
        _with_start(model_of_tokens(path, side), special["start_id"], special["pad_id"])
        for path, side in zip(paths, sides, strict=True)
    ]
    return MarianTokenizer(
        *models,
        **special,
        vocabulary_size=len(sides[0]),
        target_vocabulary_size=len(sides[1]),
        reads_codes=from_zeros or any(map(CODE.fullmatch, sides[0])),
    )


def sentencepiece_files(tokenizer: Tokenizer) -> dict[str, bytes]:
    """Returns the SentencePiece models by file name; one model if they are equal."""
    models = tokenizer.source_model, tokenizer.target_model
    if models[0] == models[1]:
        return {SHARED_FILE: models[0]}
    return dict(zip(FILES, models, strict=True))


def _with_pad(sides: Sequence[Sequence[str]]) -> tuple[list[list[str]], str]:
    """Returns vocabularies with a pad that has the same id in both, and its token."""
    for pad in (PAD, BLANK):
        ids = {side.index(pad) if pad in side else None for side in sides}
        if len(ids) == 1 and None not in ids:
            return [list(side) for side in sides], pad
    size = max(map(len, sides))
    return [[*filled_up(side, size), PAD] for side in sides], PAD


def _id_of(folder: Path, sides: Sequence[Sequence[str]], token: Any) -> int:
    """Returns the id of a special token, which must be the same on both sides."""
    ids = [side.index(token) if token in side else None for side in sides]
    if len(set(ids)) != 1 or None in ids:
        raise ValueError(
            f"{folder} must have the token {token!r} with one id in its vocabularies. "
            f"Received: {ids}"
        )
    return ids[0]


def _models(folder: Path) -> list[Path]:
    """Returns the paths of the SentencePiece models of source and target."""
    for directory in (folder, folder.parent):
        for names in (FILES, (SHARED_FILE, SHARED_FILE)):
            paths = [directory / name for name in names]
            if all(path.is_file() for path in paths):
                return paths
    raise FileNotFoundError(
        f"{folder} must have SentencePiece models: {FILES[0]} and {FILES[1]}, or "
        f"{SHARED_FILE} for both languages. Copy them there."
    )


def _with_start(model: bytes, start_id: int, pad_id: int) -> bytes:
    """Adds the start piece of targets, which is not text, to a model."""
    if start_id == pad_id:
        return model
    proto = ModelProto.FromString(model)
    proto.pieces[start_id].type = PIECE.CONTROL
    proto.trainer_spec.bos_id = start_id
    proto.trainer_spec.bos_piece = proto.pieces[start_id].piece
    return proto.SerializeToString()
