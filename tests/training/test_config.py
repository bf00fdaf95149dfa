import copy
import pickle
import re

import keras
import numpy as np
import pytest
from models import make_model

from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import TrainingConfig, new_translator
from keras_vanilla.training.config import RECIPES


def test_the_paper_recipe_has_the_numbers_of_the_paper():
    config = TrainingConfig(recipe="paper", preset="big").resolve(pairs=1)
    assert (config.tokens_per_batch, config.warmup_steps) == (25_000, 4000)
    assert (config.dropout, config.label_smoothing) == (0.3, 0.1)


@pytest.mark.parametrize("line", range(4))
def test_the_table_in_the_docstring_is_true(line):
    table = re.findall(
        r"^ +\| (below|more)(.*)\|$", TrainingConfig.__doc__, re.MULTILINE
    )
    columns = [column.replace(",", "").strip() for column in table[line][1].split("|")]
    limit = int(columns[0]) if columns[0] else 10**9
    config = TrainingConfig(preset="big").resolve(pairs=limit - 1)
    dropout = "the preset's" if config.dropout == 0.3 else str(config.dropout)
    numbers = config.tokens_per_batch, config.warmup_steps, config.epochs
    assert columns[1:] == [dropout, *map(str, numbers)]
    assert limit == 10**9 or TrainingConfig(preset="big").resolve(limit) != config
    assert len(RECIPES) == 4


def test_what_is_given_is_not_replaced():
    config = TrainingConfig(epochs=5, dropout=0.0, preset="tiny").resolve(pairs=1000)
    assert (config.epochs, config.dropout, config.preset) == (5, 0.0, "tiny")
    assert config.warmup_steps == 1000


def test_a_resolved_config_has_no_open_number_but_the_vocabulary_and_what_is_off():
    values = TrainingConfig().resolve(pairs=50_000).to_dict()
    missing = {name for name, value in values.items() if value is None}
    off = {"learning_rate", "max_length", "max_length_ratio", "patience", "quantize"}
    of_the_model = {"vocabulary_size", "normalize_first"}
    assert missing == {*of_the_model, "sampling", *off}
    assert values["preset"] == "small" and values["dtype"] == "float32"


@pytest.mark.parametrize(
    "value",
    [
        {"epochs": 0},
        {"epochs": 1.5},
        {"tokens_per_batch": 0},
        {"warmup_steps": -1},
        {"vocabulary_size": 0},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"label_smoothing": float("nan")},
        {"label_smoothing": None},
        {"seed": -1},
        {"seed": 2**32},
        {"seed": True},
        {"micro_batches": 0},
        {"micro_batches": "2"},
        {"max_tokens": 1},
        {"max_length": 1},
        {"max_length_ratio": 0.9},
        {"drop_duplicates": "yes"},
        {"drop_duplicates": None},
        {"clip_norm": -1},
        {"clip_norm": None},
        {"weight_decay": float("inf")},
        {"learning_rate": -0.1},
        {"learning_rate": "fast"},
        {"sampling": -0.1},
        {"freeze": "everything"},
        {"quantize": "int2"},
        {"patience": 0},
        {"average_last": 0},
        {"preset": "huge"},
        {"recipe": "best"},
        {"dtype": "float31"},
        {"separate_vocabularies": "yes"},
        {"normalize_first": "yes"},
    ],
    ids=str,
)
def test_a_value_out_of_its_range_is_refused(value):
    ((name, received),) = value.items()
    with pytest.raises(ValueError, match=f"`{name}` must be .* Received: {received!r}"):
        TrainingConfig(**value)


@pytest.mark.parametrize(
    ("given", "max_tokens"), [(None, 256), (100, 100), (256, 256), (700, 256)]
)
def test_pairs_are_by_default_no_longer_than_the_model_takes(given, max_tokens):
    config = TrainingConfig(max_length=given)
    config.check_start()
    assert config.resolve(pairs=1000).max_tokens == max_tokens
    model = make_model(max_length=max_tokens - 1)  # to train further
    assert TrainingConfig().resolve(1000, model).max_tokens == max_tokens - 1
    assert TrainingConfig(max_tokens=7).resolve(1000, model).max_tokens == 7


def test_an_unknown_value_gets_a_suggestion():
    with pytest.raises(TypeError, match="TrainingConfig has no .*Did you mean 'epochs"):
        TrainingConfig(epoch=3)
    config = TrainingConfig(epochs=3)
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config


def test_a_misspelled_preset_gets_a_suggestion():
    with pytest.raises(ValueError, match="Did you mean 'small'"):
        TrainingConfig(preset="smal")


def test_numpy_integers_and_policy_objects_become_plain_values():
    config = TrainingConfig(
        epochs=np.int64(3),
        seed=np.uint8(7),
        dropout=np.float32(0.5),
        separate_vocabularies=np.True_,
        dtype=keras.DTypePolicy("mixed_bfloat16"),
    )
    plain = TrainingConfig(
        epochs=3,
        seed=7,
        dropout=0.5,
        separate_vocabularies=True,
        dtype="mixed_bfloat16",
    )
    assert config == plain
    kinds = {type(value) for value in config.to_dict().values()}
    assert kinds == {int, float, str, bool, tuple, type(None)}


@pytest.mark.parametrize(
    "total_steps, warmup_steps",
    [(376, 75), (4999, 999), (5000, 1000), (10**6, 1000), (3, 1)],
)
def test_a_short_warmup_is_at_most_a_fifth_of_all_steps(total_steps, warmup_steps):
    config = TrainingConfig().resolve(3_000).with_short_warmup(total_steps)
    assert config.warmup_steps == warmup_steps
    constant = TrainingConfig(learning_rate=1e-4).resolve(3_000)
    assert constant.with_short_warmup(total_steps) == constant


def test_a_constant_learning_rate_has_no_warmup_steps():
    config = TrainingConfig(learning_rate=1e-4).resolve(pairs=50_000)
    assert config.warmup_steps is None and config.epochs == 20
    assert "learning rate 0.0001" in str(config) and "warm-up" not in str(config)
    with pytest.raises(ValueError, match="learning_rate=0.1, warmup_steps=9"):
        TrainingConfig(learning_rate=0.1, warmup_steps=9)
    with pytest.raises(ValueError, match="`learning_rate` .* above 0. Received: 0"):
        TrainingConfig(learning_rate=0)  # which would train nothing


def test_a_cooldown_lasts_at_most_all_epochs():
    config = TrainingConfig(cooldown_epochs=20).resolve(pairs=50_000)
    assert "20 epochs, cooldown over the last 20" in str(config)
    assert "cooldown" not in str(TrainingConfig().resolve(pairs=50_000))
    message = "`cooldown_epochs` must be at most the number of epochs, 20. Received: 21"
    with pytest.raises(ValueError, match=message):
        TrainingConfig(cooldown_epochs=21).resolve(pairs=50_000)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("encoder", ("encoder",)),
        (["encoder", "embeddings", "encoder"], ("embeddings", "encoder")),
        ([], ()),
    ],
)
def test_frozen_parts_have_one_order(given, parts):
    config = TrainingConfig(freeze=given)
    assert config.freeze == parts
    assert str(config.resolve(9)).endswith("frozen") is bool(parts)


def test_something_is_left_to_train():
    with pytest.raises(ValueError, match="leave something to train. Received: all"):
        TrainingConfig(freeze=["encoder", "decoder", "embeddings"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"freeze": "encoder"}, r"freeze=\('encoder',\)"),
        ({"quantize": "int8"}, "quantize='int8'"),
    ],
)
def test_a_new_translator_is_neither_frozen_nor_quantised(settings, message):
    with pytest.raises(ValueError, match=f"learned nothing yet. .*{message}"):
        TrainingConfig(**settings).check_start()


def test_a_training_for_8_bits_is_a_short_one():
    config = TrainingConfig(quantize="int8").resolve(50_000)
    assert (config.epochs, config.patience, config.warmup_steps) == (5, 2, None)
    assert config.learning_rate == 2e-4
    assert "for int8 files" in str(config)
    own = {"epochs": 7, "patience": 3, "learning_rate": 0.5}
    config = TrainingConfig(quantize="int4", **own).resolve(50_000)
    assert {name: getattr(config, name) for name in own} == own
    config = TrainingConfig(quantize="int4", warmup_steps=9).resolve(50_000)
    assert (config.warmup_steps, config.learning_rate) == (9, None)


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        TrainingConfig().epochs = 3


def test_more_tokens_than_a_new_model_takes_are_refused():
    TrainingConfig(max_tokens=512).check_start()
    with pytest.raises(ValueError, match="`max_length`, 512. Received: 600"):
        TrainingConfig(max_tokens=600).check_start()
    TrainingConfig(max_tokens=600, max_length=1024).check_start()


@pytest.mark.full
def test_the_length_given_to_a_new_translator_is_what_counts():
    pairs = ParallelCorpus(["one two", "three"], ["een twee", "drie"])
    sizes = {"preset": "tiny", "vocabulary_size": 300}
    model = new_translator(pairs, max_length=1024, max_tokens=600, **sizes).model
    assert model.max_length == 1024
    assert new_translator(pairs, max_length=60, **sizes).model.max_length == 60
    with pytest.raises(ValueError, match="`max_length`, 60. Received: 70"):
        new_translator(pairs, max_length=60, max_tokens=70, **sizes)
