import pytest
import tensorflow as tf
from near_ties import assert_same_but_for_near_ties
from word_reversal import padded


@pytest.fixture(scope="module")
def loaded(saved_folder):
    import tensorflow_text  # noqa: F401  # its operations are in the graph

    return tf.saved_model.load(str(saved_folder))


@pytest.fixture(scope="module")
def translate(loaded):
    def run(texts):
        texts = loaded.signatures["translate"](tf.constant(texts, tf.string))["text"]
        return [text.decode() for text in texts.numpy()]

    return run


@pytest.fixture(scope="module")
def translate_ids(loaded):
    def run(source_ids):
        source_ids = tf.constant(source_ids, tf.int32)
        return loaded.signatures["translate_ids"](source_ids)["ids"].numpy()

    return run


def test_strings_are_translated_as_in_keras(
    trained_translator, translate, unseen_sentences
):
    texts = ["", *unseen_sentences, "   ", "Grüße 🙂", "two\tthree", "\u200b"]
    expected = trained_translator.translate(texts)
    assert len(set(expected)) > 150
    assert translate(texts) == expected
    assert translate([]) == []


@pytest.mark.parametrize("extra", [0, 13])
def test_ids_are_those_of_keras_with_any_padding(
    trained_translator, translate_ids, unseen_sentences, extra
):
    sources = trained_translator.encode(unseen_sentences)
    assert_same_but_for_near_ties(
        trained_translator.model,
        sources,
        trained_translator.search(sources),
        translate_ids(padded(sources, extra)),
    )


def test_output_is_fifty_longer_than_source_up_to_max_length(translate_ids):
    assert translate_ids([[7, 3, 0]]).shape == (1, 53)
    assert translate_ids([[7, 3] + [0] * 20] * 2).shape == (2, 60)
    assert translate_ids([[7, 3] + [0] * 59]).shape == (1, 60)  # pads do not count


def test_every_variable_is_written_once(trained_translator, saved_folder):
    path = str(saved_folder / "variables" / "variables")
    reader = tf.train.load_checkpoint(path)
    written = sum(
        reader.get_tensor(name).nbytes
        for name, _ in tf.train.list_variables(path)
        if name.endswith("VARIABLE_VALUE")
    )
    assert written == 4 * trained_translator.model.count_params()
    (data,) = (saved_folder / "variables").glob("*.data-*")
    assert written < data.stat().st_size < 1.1 * written  # and the object graph


def test_long_texts_of_batch_are_marked_and_others_translated(loaded):
    long_text = "one " * 60  # 61 tokens with the end
    texts = ["one", long_text, "", "two three", 9 * long_text]
    result = loaded.signatures["translate"](tf.constant(texts))
    assert result["too_long"].numpy().tolist() == [False, True, False, False, True]
    assert result["text"].numpy().tolist() == [b"een", b"", b"", b"drie twee", b""]
    alone = loaded.signatures["translate"](tf.constant(["one " * 59]))
    assert alone["text"].numpy()[0] and not alone["too_long"].numpy()[0]


@pytest.mark.parametrize(
    "ids, received",
    [
        ([7] * 60 + [3], "at most 60 tokens. Received"),
        ([7, -1, 3], "at least 0 and below"),
        ([7, 10_000, 3], "[10000]"),
    ],
    ids=["long", "negative", "unknown"],
)
def test_wrong_row_of_ids_is_refused(translate_ids, ids, received):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        translate_ids([ids, [7, 3] + [0] * (len(ids) - 2)])
    assert received in str(caught.value)
