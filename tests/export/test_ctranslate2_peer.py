"""The peer of `benchmarks/phone_speed.py` has our weights: it says what Keras says."""

import pytest
import word_reversal
from near_ties import assert_same_but_for_near_ties

from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation.translator import Translator

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
import ctranslate2_peer as peer  # noqa: E402  after the skip

pytestmark = pytest.mark.full


def check(translator, sentences, folder):
    """Both search greedily in float32 and must agree on each sentence."""
    peer.write(translator, folder)
    runtime = peer.open_runtime(folder)
    sources = translator.encode(sentences)
    lengths = [min(len(source) + 50, translator.model.max_length) for source in sources]
    received = [
        peer.translate_ids(runtime, translator.tokenizer, source, length)
        for source, length in zip(sources, lengths, strict=True)
    ]
    expected = translator.search(sources)
    assert_same_but_for_near_ties(translator.model, sources, expected, received)
    return received


def test_peer_translates_as_keras(trained_translator, unseen_sentences, tmp_path):
    sentences = unseen_sentences[::10]
    received = check(trained_translator, sentences, tmp_path / "peer")
    right = map(word_reversal.dutch, sentences[:10])
    assert trained_translator.tokenizer.decode(received)[:10] == list(right)


def test_separate_tables_and_an_output_bias_are_converted(tmp_path):
    sources = word_reversal.english_sentences(300, seed=0)
    targets = [word_reversal.dutch(source) for source in sources]
    tokenizer = Tokenizer.train_separate(sources, targets, vocabulary_size=290)
    model = Transformer.from_preset(
        "tiny",
        source_vocabulary_size=tokenizer.vocabulary_size,
        target_vocabulary_size=tokenizer.target_vocabulary_size,
        share_embeddings=False,
        output_bias=True,
        num_decoder_layers=3,
        scale_embeddings=False,
        max_length=40,
    )
    bias = model.logits_bias.bias
    bias.assign(bias + [0.3 * (i % 7) for i in range(bias.shape[0])])
    check(Translator(tokenizer, model), sources[:5], tmp_path / "peer")


def test_another_architecture_is_refused(trained_translator, tmp_path):
    config = {**trained_translator.model.get_config(), "normalize_first": True}
    other = Translator(trained_translator.tokenizer, Transformer.from_config(config))
    with pytest.raises(ValueError, match="Only post-norm with ReLU"):
        peer.write(other, tmp_path / "peer")
