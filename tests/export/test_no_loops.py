"""A file in which nothing is said four times in a row says what Keras says."""

import pytest
from checks import randomize
from repeated_tokens import ends_loop
from text_form import TextForm

from keras_vanilla import export
from keras_vanilla.export import read_description
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator
from keras_vanilla.translation.piece_texts import loop_guard

SMALL = {"max_bytes": 100, "max_source_length": 40, "max_length": 59}
REPEATED = " ".join(["one"] * 10)


@pytest.fixture(scope="module")
def translator(trained_translator):
    """One with weights at random, which says the same again and again."""
    tokenizer = trained_translator.tokenizer
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 64, "max_length": 60}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(tokenizer.vocabulary_size, **sizes, **layers)
    return Translator(tokenizer, randomize(model, seed=3))


@pytest.mark.full
@pytest.mark.parametrize("beam_size", [1, 3])
def test_file_without_loops_translates_as_keras(
    translator, tmp_path, beam_size, unseen_sentences
):
    path = tmp_path / "x.tflite"
    settings = {"quantize": None, "check": "structure", "beam_size": beam_size, **SMALL}
    export.tflite(translator, path, no_loops=True, **settings)
    description = read_description(path)
    assert description.no_loops and "without loops" in description.search
    # Of each of them an output may have 59 tokens: one search finds them all.
    long = [text for text in unseen_sentences if len(translator.encode([text])[0]) > 9]
    texts = [*long[:12], REPEATED]
    config = {"beam_size": beam_size, "max_length": 59}
    found = [
        [best for best, *_ in translator.stream(texts, no_loops=no_loops, **config)]
        for no_loops in (False, True)
    ]
    run, changed = TextForm(path), 0
    texts_of_ids = loop_guard(translator.tokenizer).target_texts.tolist()
    for text, *hypotheses in zip(texts, *found, strict=True):
        free, guarded = ([id_ for id_ in h.ids if id_] for h in hypotheses)
        expected, outputs = hypotheses[1].text, run(text)
        received = [token for token in outputs["ids"].tolist() if token]
        assert outputs["text"] == expected
        assert received == guarded
        changed += guarded != free
        if text != REPEATED:
            lengths = range(1, len(received) + 1)
            assert not any(ends_loop(received[:n], texts_of_ids) for n in lengths)
    assert changed > 4
