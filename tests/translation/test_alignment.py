import numpy as np
from word_reversal import dutch, english_sentences

from keras_vanilla.translation import Translator
from keras_vanilla.translation.alignment import _links, align


def test_words_are_linked_to_the_words_they_translate(trained_translator):
    texts = english_sentences(60, seed=9)
    translations = [dutch(text) for text in texts]
    right = total = 0
    for text, links in zip(
        texts, trained_translator.align(texts, translations), strict=True
    ):
        last = len(text.split()) - 1
        assert [word for _, word in links] == list(range(last + 1))
        right += sum(source == last - target for source, target in links)
        total += last + 1
    assert right / total > 0.95  # the language of the test turns the words around


def test_pair_is_aligned_alike_alone_and_beside_longer_ones(trained_translator):
    assert trained_translator.align(["", "one"], ["een", ""]) == [[], []]
    assert trained_translator.align([], []) == []
    texts = ["one two", "red green blue house tree river", "ten"]
    translations = [dutch(text) for text in texts]
    together = trained_translator.align(texts, translations)
    for text, translation, links in zip(texts, translations, together, strict=True):
        assert trained_translator.align([text], [translation]) == [links]


def test_links_are_of_the_layer_that_is_named(two_layer_translator):
    model, tokenizer = two_layer_translator.model, two_layer_translator.tokenizer
    texts = english_sentences(5, seed=9, lengths=range(4, 9))
    translations = [dutch(text) for text in texts]
    ids = tokenizer.encode(texts), tokenizer.encode_target(translations)
    last = model.num_decoder_layers - 1
    links = [align(model, tokenizer, *ids, layer=layer) for layer in (0, last)]
    assert links[1] == two_layer_translator.align(texts, translations) != links[0]


def test_word_of_several_pieces_adds_them_up():
    weights = np.array([[0.4, 0.35, 0.25], [0.1, 0.2, 0.7]])  # (T, S)
    assert _links(weights, ["▁a", "b"], ["▁c", "d", "▁e"]) == [(0, 0)]
    assert _links(weights, ["▁a", "▁b"], ["▁c", "▁d", "e"]) == [(1, 0), (1, 1)]
    # Without the sum the first piece's own best source piece, 0, would be linked.
    assert weights[0].argmax() == 0


def test_punctuation_beside_a_word_does_not_count():
    weights = np.array([[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]])
    assert _links(weights, ["▁noirs", "."], ["▁black", "▁cats", "."]) == [(0, 0)]
    quoted = ["▁noirs", "▁»"]
    assert _links(weights, quoted, ["▁black", "▁cats", "."]) == [(0, 0), (1, 1)]
    assert _links(weights, quoted, ["▁black", "▁cats", "▁»"]) == [(0, 0), (2, 1)]


def test_sentence_of_the_readme_is_aligned():
    translator = Translator.from_preset("en-fr")
    text, translation = (
        "My brother has two black cats.",
        "Mon frère a deux chats noirs.",
    )
    links = [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4), (4, 5)]
    assert translator.align([text], [translation]) == [links]
