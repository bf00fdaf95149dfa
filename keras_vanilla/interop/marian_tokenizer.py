"""The tokenizer of a Marian model in Hugging Face's form."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_vanilla.interop.files.json_file import read_bytes, read_json_object
from keras_vanilla.interop.vocabularies import END, PAD, UNKNOWN
from keras_vanilla.tokenizer import MarianTokenizer
from keras_vanilla.tokenizer.marian_vocabulary import CODE
from keras_vanilla.tokenizer.special_ids import load_model

SPECIAL = UNKNOWN, END, PAD
# Settings with special tokens, and with lists of additional ones.
NAMES = "unk_token", "eos_token", "pad_token", "bos_token"
MORE = "additional_special_tokens", "extra_special_tokens"
MOST_MISSING = 0.2  # of a model's pieces; published models lack 0.3 % and 0.5 %
PIECE = ModelProto.SentencePiece
SEGMENTED = PIECE.NORMAL, PIECE.USER_DEFINED, PIECE.BYTE


def tokenizer_from_marian(
    folder: str | os.PathLike, start_id: int | None = None
) -> MarianTokenizer:
    """Reads the tokenizer of a `MarianMTModel` folder.

    The files are `source.spm`, `target.spm`, `vocab.json` and, with `separate_vocabs`,
    `target_vocab.json`. The files `tokenizer_config.json` and `added_tokens.json` are
    optional; only language codes, such as ">>fra<<", are supported as added tokens.

    Args:
        folder: path of the folder.
        start_id: int or None. The decoder's first input; None means the pad, which
            Marian's models use.
    Returns:
        MarianTokenizer, whose ids are those of `vocab.json` and the added tokens.
    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file has the wrong format, a vocabulary does not have the ids
            0, 1, 2, ... or lacks a special token, more than a fifth of the pieces of a
            model are not in the vocabulary, or the configuration needs features that
            `MarianTokenizer` does not support, such as added words.
    Warns:
        UserWarning: if the configuration has `clean_up_tokenization_spaces`, which
            rewrites translated text and is not supported.
    """
    return tokenizer_of_tokens(*tokenizer_files(Path(folder)), start_id)


def tokenizer_files(folder: Path) -> tuple[list[Path], list[Path], list[list[str]]]:
    """Reads the arguments of `tokenizer_of_tokens` from a `MarianMTModel` folder.

    Args:
        folder: path of the folder.
    Returns:
        The paths of the SentencePiece models, the paths of the vocabularies, and the
        tokens by id, each for source and target.
    Raises:
        FileNotFoundError, ValueError, Warns: as in `tokenizer_from_marian`.
    """
    path = folder / "tokenizer_config.json"
    config = read_json_object(path) if path.exists() else {}
    _check_config(path, config)
    added = _added_tokens(folder, config)
    names = "vocab.json", "vocab.json"
    if config.get("separate_vocabs"):
        names = "vocab.json", "target_vocab.json"
    return (
        [folder / "source.spm", folder / "target.spm"],
        [folder / name for name in names],
        [
            _tokens_by_id(folder / x, read_json_object(folder / x) | added)
            for x in names
        ],
    )


def tokenizer_of_tokens(
    models: Sequence[Path],
    vocabularies: Sequence[Path],
    tokens: Sequence[Sequence[str]],
    start_id: int | None = None,
) -> MarianTokenizer:
    """Creates a tokenizer from two SentencePiece models and two vocabularies.

    Args:
        models: paths of the source's and the target's SentencePiece model.
        vocabularies: paths of the two vocabularies, for errors.
        tokens: the source's and the target's tokens by id.
        start_id: as in `tokenizer_from_marian`.
    Raises:
        FileNotFoundError: if a model is missing.
        ValueError: if a vocabulary lacks a special token, its ids differ between the
            two, a model does not match its vocabulary, or `start_id` is neither the pad
            nor the start of the models.
    """
    special, of_target = map(_special_ids, vocabularies, tokens)
    if of_target != special:
        raise ValueError(
            f"The special tokens of {vocabularies[1]} must have the ids that they have "
            f"in {vocabularies[0].name}, {special}. Received: {of_target}"
        )
    protos = list(map(model_of_tokens, models, tokens))
    starts = special["pad_id"], load_model(protos[0], models[0]).bos_id()
    if start_id is not None and start_id not in starts:
        raise ValueError(
            f"`decoder_start_token_id` must be that of the pad, {starts[0]}, or of the "
            f"start in {models[0]}. Received: {start_id}"
        )
    return MarianTokenizer(
        *protos,
        **special,
        start_id=starts[0] if start_id is None else start_id,
        vocabulary_size=len(tokens[0]),
        target_vocabulary_size=len(tokens[1]),
    )


def _check_config(path, config):
    """Refuses settings that `MarianTokenizer` does not support."""
    special = [config[name] for name in NAMES if config.get(name) is not None]
    for name in MORE:
        more = config.get(name) or []
        more = list(more.values()) if isinstance(more, dict) else more
        special += more if isinstance(more, list) else [more]
    others = [x for x in (_text(path, x) for x in special) if x not in SPECIAL]
    if others or config.get("sp_model_kwargs"):
        raise ValueError(
            f"{path} must have no special tokens but {', '.join(SPECIAL)}, and no "
            "options of SentencePiece. Received: "
            f"{others[0] if others else config['sp_model_kwargs']!r}"
        )
    if config.get("clean_up_tokenization_spaces"):
        warnings.warn(
            f"{path} asks for clean_up_tokenization_spaces, which removes spaces "
            "before punctuation from translations: they are left as they are.",
            stacklevel=4,
        )


def _added_tokens(folder, config):
    """Returns the ids of tokens outside the vocabularies, such as language codes."""
    path = folder / "added_tokens.json"
    added = read_json_object(path) if path.exists() else {}
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise ValueError(
            f"{folder} must have added_tokens_decoder by ids. Received: {decoder!r:.80}"
        )
    for id_, token in decoder.items():
        added[_text(folder, token)] = int(id_) if id_.isdecimal() else id_
    for token in added:
        if token not in SPECIAL and not CODE.fullmatch(token):
            raise ValueError(
                f"{folder} has the added token {token!r}, which Hugging Face cuts out "
                "of a text before it is segmented: only codes of languages, such as "
                "'>>fra<<', can be added here."
            )
    return added


def _text(path, token):
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise ValueError(f"{path} must have tokens as text. Received: {token!r:.80}")
    return text


def _tokens_by_id(path: Path, ids: Mapping[str, int]) -> list[str]:
    """Returns the tokens in the order of their ids.

    Args:
        path: the vocabulary's name in errors.
        ids: dict of token -> id.
    Raises:
        ValueError: if a token is not text, or the ids are not 0, 1, 2, ...
    """
    for token, id_ in ids.items():
        is_text = token and token == token.encode("utf-8", "replace").decode()
        if type(id_) is not int or not 0 <= id_ < len(ids) or not is_text:
            raise ValueError(
                f"{path} must map {len(ids)} tokens to the ids 0 to {len(ids) - 1}. "
                f"Received: {token!r:.40}: {id_!r:.40}"
            )
    tokens = sorted(ids, key=ids.get)
    for id_, token in enumerate(tokens):
        if ids[token] != id_:
            raise ValueError(
                f"{path} must have each id once. Received: {ids[token]} a second time, "
                f"for {token!r}"
            )
    return tokens


def _special_ids(path, tokens):
    for token in SPECIAL:
        if token not in tokens:
            raise ValueError(f"{path} must have the token {token!r}.")
    names = {"pad_id": PAD, "unknown_id": UNKNOWN, "end_id": END}
    return {name: tokens.index(token) for name, token in names.items()}


def model_of_tokens(path: Path, tokens: Sequence[str]) -> bytes:
    """Reads a SentencePiece model and reorders it so that piece i is token i.

    Segmentations do not change. Tokens without a piece become unused pieces; pieces
    that are not tokens follow the last token.

    Args:
        path: path of the file.
        tokens: list of str by id, special tokens with Marian's names.
    Raises:
        FileNotFoundError, ValueError: as in `tokenizer_of_tokens`.
    """
    proto = _read_model(path)
    by_text = {piece.piece: piece for piece in proto.pieces}
    pieces = [by_text.pop(token, None) or _piece(token) for token in tokens]
    left = [piece for piece in by_text.values() if piece.type != PIECE.CONTROL]
    _check_pieces(path, proto, pieces, left)
    del proto.pieces[:]
    proto.pieces.extend(pieces + left)
    spec = proto.trainer_spec
    spec.pad_id, spec.unk_id, spec.eos_id = map(tokens.index, (PAD, UNKNOWN, END))
    spec.pad_piece, spec.unk_piece, spec.eos_piece = PAD, UNKNOWN, END
    spec.unk_surface = ""  # Hugging Face omits the token in decoded text
    return proto.SerializeToString()


def _read_model(path: Path) -> ModelProto:
    """Reads a SentencePiece model.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a SentencePiece model with the unknown piece <unk>.
    """
    content, proto = read_bytes(path), ModelProto()
    try:
        proto.ParseFromString(content)
    except DecodeError:
        proto.Clear()
    unknown = [piece.piece for piece in proto.pieces if piece.type == PIECE.UNKNOWN]
    if unknown != [UNKNOWN]:
        raise ValueError(
            f"{path} must be a SentencePiece model with the unknown piece {UNKNOWN}. "
            f"Received: {len(content)} bytes with {unknown or 'none'}"
        )
    return proto


def _piece(token):
    """Creates an unused piece for a token that the model does not have."""
    kind = PIECE.CONTROL if token in (PAD, END) else PIECE.UNUSED
    return PIECE(piece=token, score=0.0, type=kind)


def _check_pieces(path, proto, pieces, left):
    """Refuses a model of another vocabulary, or one that unused pieces would change."""
    segmented = [piece for piece in pieces if piece.type in SEGMENTED]
    missing = [piece.piece for piece in left]
    if len(missing) > MOST_MISSING * (len(missing) + len(segmented)):
        raise ValueError(
            f"{path} and the vocabulary are of different models: {len(missing)} of "
            f"{len(missing) + len(segmented)} pieces are not tokens, {missing[0]!r} "
            "first."
        )
    spec = proto.trainer_spec
    unused = [piece.piece for piece in pieces if piece.type == PIECE.UNUSED]
    unused = [token for token in unused if not CODE.fullmatch(token)]
    if spec.model_type != spec.UNIGRAM and unused:
        raise ValueError(
            f"{path} must be a unigram model, because the vocabulary has tokens that "
            f"are not its pieces, {unused[0]!r} first. Received: a model of type "
            f"{spec.ModelType.Name(spec.model_type)}"
        )
