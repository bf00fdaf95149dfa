"""Where each piece is in a text, in bytes, as any supported SentencePiece says it."""

from sentencepiece import sentencepiece_pb2


def encoded_pieces(peer, text):
    """The pieces of a text (bytes), with `begin` and `end`."""
    return _pieces(peer, "encode_as", text)


def decoded_pieces(peer, ids):
    """The pieces of ids, with `begin` and `end` in their text."""
    return _pieces(peer, "decode_ids_as", ids)


def _pieces(peer, name, argument):
    if hasattr(peer, f"{name}_proto"):  # from 0.2.2
        return getattr(peer, f"{name}_proto")(argument).pieces
    serialized = getattr(peer, f"{name}_serialized_proto")(argument)
    return sentencepiece_pb2.SentencePieceText.FromString(serialized).pieces
