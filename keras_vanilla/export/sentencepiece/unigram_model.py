"""A SentencePiece unigram model, read from its bytes."""

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto

SPACE_MARK = "▁".encode()
UNKNOWN_PENALTY = np.float32(10)  # below the worst piece
DEFAULT_UNKNOWN_SURFACE = " \u2047 "


class UnigramModel:
    """The pieces and rules of a SentencePiece unigram model.

    Args:
        model_bytes: bytes of the model.

    Attributes:
        pieces: list of bytes, by id.
        scores: float32 array (P,).
        types: int array (P,), of `SentencePiece.Type`.
        unknown_id, unknown_score, unknown_surface: id of a character without a piece,
            its score in a segmentation, and its text when decoded.
        byte_ids: int32 array (256,). The byte pieces, or `unknown_id` 256 times.
        spec: `NormalizerSpec` of the model.
        space: bytes. Replacement of a space.
    Raises:
        ValueError: if the bytes are not a SentencePiece model, or the model is not
            unigram, writes spaces after words, or rewrites decoded text.
    """

    def __init__(self, model_bytes: bytes):
        proto = _parse(model_bytes)
        self.spec = proto.normalizer_spec
        self.space = SPACE_MARK if self.spec.escape_whitespaces else b" "
        self.pieces = [piece.piece.encode() for piece in proto.pieces]
        self.scores = np.array([piece.score for piece in proto.pieces], "float32")
        self.types = np.array([piece.type for piece in proto.pieces])
        (self.unknown_id,) = self.ids_of("UNKNOWN")
        least = self.scores[self.ids_of("NORMAL")].min()
        self.unknown_score = least - UNKNOWN_PENALTY
        self.unknown_surface = DEFAULT_UNKNOWN_SURFACE.encode()
        if proto.trainer_spec.HasField("unk_surface"):
            self.unknown_surface = proto.trainer_spec.unk_surface.encode()
        self.byte_ids = np.full(256, self.unknown_id, "int32")
        for id_ in self.ids_of("BYTE"):
            self.byte_ids[int(self.pieces[id_][1:-1], 16)] = id_  # "<0x41>"

    def ids_of(self, *kinds: str) -> list[int]:
        """Returns the ids of pieces of the given kinds, see `SentencePiece.Type`."""
        kinds = [ModelProto.SentencePiece.Type.Value(kind) for kind in kinds]
        return np.flatnonzero(np.isin(self.types, kinds)).tolist()

    def segment_scores(self) -> np.ndarray:
        """Scores of the pieces in a segmentation; a symbol's grows with its bytes.

        User-defined symbols are scored as in `sentencepiece` 0.2.3; older versions used
        the highest score of all pieces in place of 0.1.
        """
        scores = self.scores.copy()
        for id_ in self.ids_of("USER_DEFINED"):
            scores[id_] = 0.1 * (len(self.pieces[id_]) - 1)
        return scores


def _parse(model_bytes):
    try:
        proto = ModelProto.FromString(model_bytes)
    except DecodeError:
        proto = ModelProto()
    if not proto.pieces:
        raise ValueError(
            "A SentencePiece model was expected. Received: "
            f"{len(model_bytes)} bytes that are not one"
        )
    trainer, charsmap = proto.trainer_spec, proto.denormalizer_spec.precompiled_charsmap
    is_unigram = trainer.model_type == trainer.UNIGRAM
    if not is_unigram or trainer.treat_whitespace_as_suffix or charsmap:
        raise ValueError(
            "A SentencePiece model becomes operators if it is unigram, writes spaces "
            "before words and leaves decoded text as it is. Received: type "
            f"{trainer.ModelType.Name(trainer.model_type)}, treat_whitespace_as_suffix="
            f"{trainer.treat_whitespace_as_suffix}, denormalizer_spec of "
            f"{len(charsmap)} bytes"
        )
    return proto
