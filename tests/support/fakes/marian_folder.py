"""Folders of Marian models as `transformers` writes them, with random weights."""

import json

import sentencepiece
from peer_models import learn
from word_reversal import dutch, english_sentences

CODES = [">>nld<<", ">>eng<<"]
SIZES = {
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 17,
    "decoder_ffn_dim": 19,
    "max_position_embeddings": 96,
}
FAMILIES = {  # what distinguishes published ones, in small
    "opus-mt_tiny": {"activation_function": "relu", "decoder_layers": 2},
    "opus-mt": {"activation_function": "swish"},
    "opus-mt-tc-base": {"activation_function": "swish", "end_in_the_middle": True},
    "opus-mt-tc-big": {"activation_function": "relu", "end_in_the_middle": True},
    "two vocabularies": {"separate": True},
    "two vocabularies, untied": {"separate": True, "tie_word_embeddings": False},
}


def learn_models(sentences=400):
    """SentencePiece models of the two languages, as bytes."""
    english = english_sentences(sentences, seed=0)
    languages = english, [dutch(line) for line in english]
    return [
        learn(lines, vocab_size=38, pad_id=-1, bos_id=-1, eos_id=0, unk_id=1)
        for lines in languages
    ]


def write_tokenizer(folder, models, separate=False, end_in_the_middle=False):
    """The files of a tokenizer; returns the vocabularies of source and target."""
    pieces = [_pieces(model) for model in models]
    if separate:
        vocabularies = [_vocabulary(each, end_in_the_middle) for each in pieces]
        _write(folder / "target_vocab.json", vocabularies[1])
    else:
        both = list(dict.fromkeys(pieces[0] + pieces[1] + CODES))
        vocabularies = [_vocabulary(both, end_in_the_middle)] * 2
    _write(folder / "vocab.json", vocabularies[0])
    _write(folder / "tokenizer_config.json", {"separate_vocabs": separate})
    for side, model in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(model)
    return vocabularies


def write_model(folder, vocabularies, seed=0, noise=0.1, **settings):
    """A `MarianMTModel`, saved in the folder, whose every weight is a random number."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    # Wide enough that outputs differ from each other.
    settings = {**SIZES, "init_std": 0.4, **settings}
    source, target = vocabularies
    separate = source is not target
    pad = target["<pad>"]
    config = MarianConfig(
        **settings,
        num_hidden_layers=settings["encoder_layers"],
        vocab_size=len(source),
        decoder_vocab_size=len(target),
        share_encoder_decoder_embeddings=not separate,
        pad_token_id=pad,
        eos_token_id=target["</s>"],
        forced_eos_token_id=None,
        decoder_start_token_id=pad,
        scale_embedding=True,
        attn_implementation="eager",
    )
    torch.manual_seed(seed)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed" not in name and "shared" not in name and "lm_head" not in name:
                weight += noise * torch.randn_like(weight)
        model.final_logits_bias.normal_(std=0.3)
    model.generation_config.bad_words_ids = [[pad]]
    model.generation_config.renormalize_logits = True
    model.save_pretrained(folder)
    return model


def write_folder(folder, family, models):
    """A whole folder of a family; returns the model of `transformers`."""
    settings = dict(FAMILIES[family])
    places = {
        name: settings.pop(name, False) for name in ("separate", "end_in_the_middle")
    }
    folder.mkdir(exist_ok=True)
    vocabularies = write_tokenizer(folder, models, **places)
    return write_model(folder, vocabularies, **settings)


def _pieces(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]
    return [piece for piece in pieces if piece not in ("</s>", "<unk>")]


def _vocabulary(pieces, end_in_the_middle):
    special = ["</s>", "<unk>"]
    middle = len(pieces) // 2 if end_in_the_middle else 0
    tokens = [*pieces[:middle], *special, *pieces[middle:], "<pad>"]
    return {token: id_ for id_, token in enumerate(tokens)}


def _write(path, content):
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
