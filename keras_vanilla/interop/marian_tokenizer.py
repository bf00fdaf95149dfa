"""The tokenizer of a Marian model in Hugging Face's form."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_vanilla.interop.files.json_file import read_json_object
from keras_vanilla.interop.vocabularies import END, PAD, UNKNOWN
from keras_vanilla.tokenizer import MarianTokenizer
from keras_vanilla.tokenizer.marian_vocabulary import CODE

SPECIAL = UNKNOWN, END, PAD
# Of the configuration: the names of special tokens, and of lists of more of them.
NAMES = "unk_token", "eos_token", "pad_token", "bos_token"
ADDED = "added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"
MOST_MISSING = 0.2  # of a model's pieces; published models lack 0.3 % and 0.5 %
PIECE = ModelProto.SentencePiece
SEGMENTED = PIECE.NORMAL, PIECE.USER_DEFINED, PIECE.BYTE


def tokenizer_from_marian(
    folder: str | os.PathLike, start_id: int | None = None
) -> MarianTokenizer:
    """Reads the tokenizer of a `MarianMTModel` folder.

    The files are `source.spm`, `target.spm`, `vocab.json`, `tokenizer_config.json` if
    there is one, and with its `separate_vocabs` also `target_vocab.json`.

    Args:
        folder: path of the folder.
        start_id: int or None. The decoder's first input; None means the pad, with which
            Marian's models start.
    Returns:
        MarianTokenizer, whose ids are those of `vocab.json`.
    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is not what its name says, a vocabulary does not have the
            ids 0, 1, 2, ... or a special token, more than a fifth of the pieces of a
            model are not in the vocabulary, or the configuration asks for what
            `MarianTokenizer` does not do.
    Warns:
        UserWarning: if the configuration has `clean_up_tokenization_spaces`, which
            rewrites translated text and is left out.
    """
    folder = Path(folder)
    separate = _has_separate_vocabularies(folder / "tokenizer_config.json")
    paths = [folder / "vocab.json"] * 2
    if separate:
        paths[1] = folder / "target_vocab.json"
    return tokenizer_of_tokens(
        (folder / "source.spm", folder / "target.spm"),
        paths,
        [tokens_by_id(path, read_json_object(path)) for path in paths],
        start_id,
    )


def tokenizer_of_tokens(
    models: Sequence[Path],
    vocabularies: Sequence[Path],
    tokens: Sequence[Sequence[str]],
    start_id: int | None = None,
) -> MarianTokenizer:
    """The tokenizer of two SentencePiece models and two vocabularies.

    Args:
        models: paths of the source's and the target's SentencePiece model.
        vocabularies: paths of the two vocabularies, for errors.
        tokens: the source's and the target's tokens by their ids.
        start_id: as of `tokenizer_from_marian`.
    Raises:
        FileNotFoundError: if a model is missing.
        ValueError: if a vocabulary has no special token, the two have other ids for
            one, or a model is of another vocabulary.
    """
    special, of_target = map(_special_ids, vocabularies, tokens)
    if of_target != special:
        raise ValueError(
            f"The special tokens of {vocabularies[1]} must have the ids that they have "
            f"in {vocabularies[0].name}, {special}. Received: {of_target}"
        )
    special["start_id"] = special["pad_id"] if start_id is None else start_id
    return MarianTokenizer(
        *map(model_of_tokens, models, tokens),
        **special,
        vocabulary_size=len(tokens[0]),
        target_vocabulary_size=len(tokens[1]),
    )


def _has_separate_vocabularies(path):
    """What the configuration says, which asks for nothing that is not done here."""
    config = read_json_object(path) if path.exists() else {}
    others = [token for token in _special_tokens(config) if token not in SPECIAL]
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
            stacklevel=3,
        )
    return bool(config.get("separate_vocabs"))


def _special_tokens(config):
    """The special tokens that a configuration names, as text."""
    tokens = [config[name] for name in NAMES if config.get(name) is not None]
    for name in ADDED:
        added = config.get(name) or []
        tokens += added.values() if isinstance(added, dict) else added
    return [_text(token) for token in tokens]


def _text(token):
    return token["content"] if isinstance(token, dict) else token


def tokens_by_id(path: Path, ids: Mapping[str, int]) -> list[str]:
    """The tokens in the order of their ids.

    Args:
        path: what errors call the vocabulary.
        ids: dict of token -> id.
    Raises:
        ValueError: if a token is not text, or the ids are not 0, 1, 2, ...
    """
    for token, id_ in ids.items():
        if type(id_) is not int or not 0 <= id_ < len(ids) or not _is_text(token):
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


def _is_text(token):
    try:
        return bool(token.encode())
    except UnicodeEncodeError:  # half a character
        return False


def _special_ids(path, tokens):
    for token in SPECIAL:
        if token not in tokens:
            raise ValueError(f"{path} must have the token {token!r}.")
    names = {"pad_id": PAD, "unknown_id": UNKNOWN, "end_id": END}
    return {name: tokens.index(token) for name, token in names.items()}


def model_of_tokens(path: Path, tokens: Sequence[str]) -> bytes:
    """A SentencePiece model that segments as a file's, and whose piece i is token i.

    Tokens without a piece are unused, which no text is segmented into; pieces that are
    not tokens follow the last token.

    Args:
        path: path of the file.
        tokens: list of str, by their ids, the special ones under Marian's names.
    Raises:
        FileNotFoundError, ValueError: as `tokenizer_of_tokens`.
    """
    proto = read_model(path)
    by_text = {piece.piece: piece for piece in proto.pieces}
    pieces = [by_text.pop(token, None) or _piece(token) for token in tokens]
    left = [piece for piece in by_text.values() if piece.type != PIECE.CONTROL]
    _check_pieces(path, proto, pieces, left)
    del proto.pieces[:]
    proto.pieces.extend(pieces + left)
    spec = proto.trainer_spec
    spec.pad_id, spec.unk_id, spec.eos_id = map(tokens.index, (PAD, UNKNOWN, END))
    spec.pad_piece, spec.unk_piece, spec.eos_piece = PAD, UNKNOWN, END
    spec.unk_surface = ""  # Hugging Face leaves the token out of a decoded text
    return proto.SerializeToString()


def read_model(path: Path) -> ModelProto:
    """A SentencePiece model.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a SentencePiece model with the unknown piece <unk>.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    content, proto = path.read_bytes(), ModelProto()
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
    """A piece for a token that the model does not have."""
    kind = PIECE.CONTROL if token in (PAD, END) else PIECE.UNUSED
    return PIECE(piece=token, score=0.0, type=kind)


def _check_pieces(path, proto, pieces, left):
    """Refuses a model of another vocabulary, and what unused pieces would change."""
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
