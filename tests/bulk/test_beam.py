"""Apache Beam: texts through RunInference, with and without keys."""

import pytest

pytestmark = pytest.mark.full
beam = pytest.importorskip("apache_beam", reason="Apache Beam is not installed")
from apache_beam.ml.inference.base import (  # noqa: E402  after the skip
    KeyedModelHandler,
    RunInference,
)
from apache_beam.testing.util import assert_that, equal_to  # noqa: E402

from keras_vanilla.bulk.beam import BulkTranslatorHandler  # noqa: E402


@pytest.fixture
def expected(trained_translator, unseen_sentences):
    texts = sorted(set(unseen_sentences[:50]))
    return list(zip(texts, trained_translator.translate(texts), strict=True))


def test_texts_to_predictions(expected, trained_file):
    handler = BulkTranslatorHandler(trained_file, max_batch_size=16)
    with beam.Pipeline(runner="DirectRunner") as pipeline:
        found = (
            pipeline
            | beam.Create([text for text, _ in expected])
            | RunInference(handler)
            | beam.Map(lambda result: (result.example, result.inference.text))
        )
        assert_that(found, equal_to(expected))


def test_keys_stay_with_their_texts(expected, trained_file):
    handler = KeyedModelHandler(BulkTranslatorHandler(trained_file, beam_size=1))
    numbered = list(enumerate(expected))
    with beam.Pipeline(runner="DirectRunner") as pipeline:
        found = (
            pipeline
            | beam.Create([(number, text) for number, (text, _) in numbered])
            | RunInference(handler)
            | beam.MapTuple(lambda key, result: (key, result.inference.text))
        )
        wanted = [(number, translation) for number, (_, translation) in numbered]
        assert_that(found, equal_to(wanted))


def test_texts_of_about_equal_length_go_together():
    settings = BulkTranslatorHandler("model.keras").batch_elements_kwargs()
    assert settings["length_fn"]("seven!!") == 7
    assert settings["bucket_boundaries"] == sorted(settings["bucket_boundaries"])
    assert settings["max_batch_size"] == 1024
