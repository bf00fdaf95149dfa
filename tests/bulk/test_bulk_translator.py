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


def test_given_batch_is_unchanged_and_column_is_chosen(trained_file, unseen_sentences):
    bulk = BulkTranslator(trained_file, column="english")
    given = {"english": np.array(unseen_sentences[:3])}  # NumPy's own strings
    assert len(bulk(given)["translation"]) == 3 and given.keys() == {"english"}
    assert bulk({"english": np.array([], object)})["translation"].shape == (0,)


@pytest.mark.parametrize("text", [None, 3, b"one"])
def test_other_types_are_refused(bulk, text):
    with pytest.raises(TypeError, match="str"):
        bulk({"text": [text]})
