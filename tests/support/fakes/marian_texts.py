"""Files of a Marian tokenizer with every odd case, texts for it, and what is right."""

import json
import random
import re

import sentencepiece
from peer_models import learn

WORDS = "the cat dog sat saw mat on under a house: tree! they see the seat".split()
OTHER = "le là où était ¢ дом кошка éclair 🙂 naïve la leçon et le dit, où".split()
CODES = [">>fra<<", ">>deu<<", ">>zho_Hans<<", ">>two words<<"]
NOT_TOKENS = {"▁dog", "▁où"}  # pieces that the vocabulary lacks
# No piece of the source; as a whole a token, or not.
UNKNOWN = ["é", "éé", "¢", "¢x¢", "дом", "до", "🙂", "🙂🙂", "où", "漢字", "a漢字b"]
WITH_CODES = [
    ">>fra<< the cat",
    ">>deu<<the cat",
    ">>fra<<",
    ">>fra<< ",
    " >>fra<< the cat",
    "the >>fra<< cat",
    ">>fra<<>>deu<< the cat",
    ">>two words<< the",
    ">> the cat << sat",
    ">><< the",
    ">>the\ncat<< the",
    ">>fra< the",
    "<<fra>> the",
]
ODD = ["", " ", "\t\n", "\u00a0 the", "▁the▁ cat", "ﬁ ½ ①", "e\u0301", "\x01\x7f"]
SPECIAL = ["</s>", "the </s> cat", "<unk>", "<pad>the", "<pad><pad>"]
KINDS = ["joint", "end in the middle", "separate", "no codes"]


def _lines(words):
    chance = random.Random(0)
    return [" ".join(chance.choices(words, k=9)) for _ in range(199)]


SOURCE, TARGET = _lines(WORDS), _lines(OTHER)
TEXTS = [*SOURCE[:7], *TARGET[:7], *UNKNOWN, *WITH_CODES, *ODD]


def learn_models(**options):
    """SentencePiece models of the two languages, as bytes."""
    options = {"normalization_rule_name": "nmt_nfkc", "num_threads": 1, **options}
    options = {"character_coverage": 1.0, "hard_vocab_limit": False, **options}
    return [learn(lines, vocab_size=90, **options) for lines in (SOURCE, TARGET)]


def tokens_of(model):
    """A vocabulary's tokens, as Marian has them: the special ones, pieces, the pad."""
    peer = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [peer.id_to_piece(id_) for id_ in range(peer.get_piece_size())]
    random.Random(0).shuffle(pieces)
    left_out = {"<unk>", "<s>", "</s>", "<pad>", *NOT_TOKENS}
    pieces = [piece for piece in pieces if piece not in left_out]
    return ["</s>", "<unk>", *CODES, *pieces, "<pad>"]


def write_json(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")


def write_vocabulary(path, tokens):
    write_json(path, {token: id_ for id_, token in enumerate(tokens)})


def write_files(folder, models, kind="joint"):
    """The files of a tokenizer; returns the folder."""
    folder.mkdir()
    source, target = map(tokens_of, models)
    if kind == "separate":
        size = max(len(source), len(target))  # as in published models, of equal sizes
        source, target = (
            [*each[:-1], *(f"<{n}>" for n in range(size - len(each))), "<pad>"]
            for each in (source, target)
        )
        write_vocabulary(folder / "target_vocab.json", target)
    else:
        source = [*source[:-1], *(t for t in target if t not in source), "<pad>"]
    if kind == "no codes":
        source = [token for token in source if token not in CODES]
    if kind == "end in the middle":
        source = [*source[2:40], "<unk>", "</s>", *source[40:]]
    write_vocabulary(folder / "vocab.json", source)
    config = {"separate_vocabs": kind == "separate", "source_lang": "en"}
    write_json(folder / "tokenizer_config.json", config)
    for side, model in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(model)
    return folder


class Reference:
    """What Marian does, in a few lines: the id of a piece is that of its text."""

    def __init__(self, folder):
        separate = (folder / "target_vocab.json").exists()
        self.sides = {}
        for side in ("source", "target"):
            name = "target_vocab" if separate and side == "target" else "vocab"
            peer = sentencepiece.SentencePieceProcessor(str(folder / f"{side}.spm"))
            ids = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            self.sides[side] = peer, ids
        _, self.source_ids = self.sides["source"]

    def encode(self, text, side="source"):
        peer, ids = self.sides[side]
        code, text = re.fullmatch("(>>.*?<<)?(.*)", text, re.DOTALL).groups()
        pieces = [code] * (code is not None) + peer.encode(text, out_type=str)
        return [ids.get(piece, ids["<unk>"]) for piece in pieces] + [ids["</s>"]]

    def decode(self, ids):
        _, tokens = self.sides["target"]
        texts = {id_: token for token, id_ in tokens.items()}
        pieces = [texts[id_] for id_ in ids]
        pieces = [each for each in pieces if each not in ("</s>", "<unk>", "<pad>")]
        return "".join(pieces).replace("▁", " ").strip()
