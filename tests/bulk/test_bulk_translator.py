"""Batches in, batches with translations out."""

import numpy as np
import pytest

from keras_vanilla.bulk import BulkTranslator


@pytest.fixture(scope="module")
def bulk(trained_file):
    return BulkTranslator(trained_file)


def test_batch_gets_translations_and_problems(
    bulk, trained_translator, unseen_sentences
):
    texts = np.array(unseen_sentences[:9], object)
    batch = bulk({"text": texts, "number": np.arange(9)})
    assert batch.keys() == {"text", "number", "translation", "problem"}
    expected = trained_translator.translate(unseen_sentences[:9])
    assert batch["translation"].tolist() == expected
    assert batch["problem"].tolist() == [None] * 9
    np.testing.assert_array_equal(batch["number"], np.arange(9))


def test_given_batch_is_unchanged(bulk, unseen_sentences):
    given = {"text": unseen_sentences[:2]}
    bulk(given)
    assert given == {"text": unseen_sentences[:2]}


def test_other_column_name(trained_file, unseen_sentences):
    bulk = BulkTranslator(trained_file, column="english")
    texts = np.array(unseen_sentences[:3])  # NumPy's own strings
    assert len(bulk({"english": texts})["translation"]) == 3


def test_empty_batch(bulk):
    assert bulk({"text": np.array([], object)})["translation"].shape == (0,)


@pytest.mark.parametrize("text", [None, 3, b"one"])
def test_other_types_are_refused(bulk, text):
    with pytest.raises(TypeError, match="str"):
        bulk({"text": [text]})
