"""Where each piece is in a text, in bytes, as any supported SentencePiece says it."""

import re

from sentencepiece import sentencepiece_pb2


def encoded_pieces(peer, text):
    """The pieces of a text (bytes), with `begin` and `end`."""
    return _pieces(peer, "encode_as", text)


def decoded_pieces(peer, ids):
    """The pieces of ids, with `begin` and `end` in their text."""
    return _pieces(peer, "decode_ids_as", ids)


def known_share(peer, text):
    """The share of the characters and pieces of a text that are in the vocabulary."""
    pieces = map(peer.id_to_piece, peer.encode(text))
    counted = [each for each in pieces if not re.fullmatch("<0x[89AB].>|▁", each)]
    known = [not re.match("<0x|<unk>", each) for each in counted]
    return sum(known) / len(known) if known else 1.0


def _pieces(peer, name, argument):
    if hasattr(peer, f"{name}_proto"):  # from 0.2.2
        return getattr(peer, f"{name}_proto")(argument).pieces
    serialized = getattr(peer, f"{name}_serialized_proto")(argument)
    return sentencepiece_pb2.SentencePieceText.FromString(serialized).pieces
