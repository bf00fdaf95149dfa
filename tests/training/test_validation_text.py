import types
import warnings

import pytest
from word_reversal import dutch, english_sentences

from keras_vanilla._about import About
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.training import TrainingConfig
from keras_vanilla.training.run import TrainingRun

LONG = "house " * 100
INVISIBLE = "\u200b"


def corpus(*sources, origin="The corpus"):
    return ParallelCorpus(sources, map(dutch, sources), origin=origin)


@pytest.fixture(scope="module")
def training_text():
    return corpus(*english_sentences(60, 0))


def run_with(validation, training_text, translator, **settings):
    """A run whose batches are made, and what it warned of."""
    config = TrainingConfig(max_tokens=40, **settings)
    folder = types.SimpleNamespace(step_to_resume=lambda *_: None)
    run = TrainingRun(config, folder, training_text, validation, translator=translator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run._make_batches()
    return run, [str(each.message) for each in caught if each.category is UserWarning]


def test_long_and_empty_pairs_are_left_out_of_validation(
    training_text, trained_translator
):
    sources = ["two small trees", LONG, INVISIBLE, "a large tree", LONG]
    validation = ParallelCorpus(sources, sources, origin="valid.en")
    run, messages = run_with(validation, training_text, trained_translator)
    assert messages == [
        "valid.en: 1 of 5 pairs have no token on one side and are left out: lines 3.",
        "valid.en: 2 of 5 pairs are longer than 40 tokens and are left out: lines "
        "2, 5.",
    ]
    assert run.validation.line_numbers.tolist() == [1, 4]
    assert sorted(run.validation_batches.line_numbers(0)) == [1, 4]
    assert len(trained_translator.encode(list(run.validation.sources))) == 2


def test_translator_keeps_short_validation_sentences(training_text, trained_translator):
    validation = corpus(*english_sentences(40, 1))
    run, _ = run_with(validation, training_text, trained_translator)
    examples = run._about().examples
    assert len(examples) == 5
    assert set(examples) <= set(run.validation.sources) - set(training_text.sources)

    chosen = trained_translator.replace(about=About(name="a", examples=["two trees"]))
    run, _ = run_with(validation, training_text, chosen)
    assert run._about() == chosen.about


def test_best_epoch_of_earlier_process_has_new_description(
    training_text, trained_translator, tmp_path
):
    validation = corpus(*english_sentences(20, 1))
    run, _ = run_with(validation, training_text, trained_translator)
    run.about = About(name="today", examples=[])
    run.translator = run.translator.replace(about=run._about())
    earlier = trained_translator.replace(about=About(name="earlier"))
    run.folder = types.SimpleNamespace(output=tmp_path, load=lambda _: earlier)
    weights = trained_translator.model.get_weights()
    chosen = run._choose(weights, 1, {"val_bleu": [101.0]})  # so that it is the best
    assert chosen.about == About(name="today", examples=[])


def test_validation_without_pairs_is_refused(training_text, trained_translator):
    validation = ParallelCorpus([LONG], [LONG], origin="valid.en")
    with pytest.raises(ValueError, match="valid.en: no pair is left of 1"):
        run_with(validation, training_text, trained_translator)


def test_validation_text_in_training_text_is_reported(
    training_text, trained_translator
):
    known = training_text.sources
    sources = ["small tree nine", known[7], "large large large", known[3]]
    validation = corpus(*sources, origin="valid.en")
    _, messages = run_with(validation, training_text, trained_translator)
    assert messages == [
        "valid.en: 2 of 4 pairs have a source sentence that the training text has too, "
        "and make the scores look better than they are: lines 2, 4."
    ]


def test_filters_apply_only_to_training_text(trained_translator):
    uneven = ParallelCorpus(
        ["one", "two", "two"], ["een", dutch("two " * 9)] + ["twee"]
    )
    twice = corpus("six", "red", "red")
    settings = {"max_length_ratio": 2.0, "drop_duplicates": True}
    run, messages = run_with(uneven, twice, trained_translator, **settings)
    assert run.batches.report == {"duplicate": [3]} and len(messages) == 1
    assert run.validation_batches.report == {}


def test_settings_reach_batches(training_text, trained_translator):
    drawn = {"sampling": 0.3, "robust": True, "seed": 3, "tokens_per_batch": 99}
    run, _ = run_with(None, training_text, trained_translator, **drawn)
    drawn["noise"] = drawn.pop("robust")
    tokenizer = trained_translator.tokenizer
    expected = batches(training_text, tokenizer, max_tokens=40, **drawn)
    assert run.batches.digest == expected.digest
