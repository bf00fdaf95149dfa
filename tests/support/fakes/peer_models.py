"""SentencePiece models that `sentencepiece` alone has learnt."""

import io

import sentencepiece


def learn(lines, **options):
    """The bytes of a model; options as `sentencepiece`'s trainer names them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, minloglevel=2, **options
    )
    return model.getvalue()
