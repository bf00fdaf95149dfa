import copy
import pickle
import re

import keras
import numpy as np
import pytest
from models import make_model

from keras_vanilla.training import TrainingConfig
from keras_vanilla.training.config import RECIPES


def test_recipe_of_paper_has_its_numbers():
    config = TrainingConfig(recipe="paper", preset="big").resolve(pairs=1)
    assert (config.tokens_per_batch, config.warmup_steps) == (25_000, 4000)
    assert (config.dropout, config.label_smoothing) == (0.3, 0.1)


@pytest.mark.parametrize("line", range(4))
def test_table_in_docstring_is_true(line):
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


@pytest.mark.parametrize(
    ("settings", "expected", "text"),
    [
        ({"epochs": 5, "dropout": 0.0}, {"epochs": 5, "dropout": 0.0}, "5 epochs"),
        ({"learning_rate": 1e-4}, {"warmup_steps": None, "epochs": 20}, "rate 0.0001,"),
        ({"cooldown_epochs": 20}, {}, "20 epochs, cooldown over the last 20"),
        ({"sampling": 0.5, "robust": True}, {}, "sampling 0.5, noise"),
    ],
)
def test_recipe_keeps_and_describes_settings(settings, expected, text):
    config = TrainingConfig(**settings).resolve(pairs=50_000)
    assert {name: getattr(config, name) for name in expected} == expected
    assert text in str(config) and text not in str(TrainingConfig().resolve(9))
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config


def test_resolved_config_leaves_only_unused_settings_open():
    values = TrainingConfig().resolve(pairs=50_000).to_dict()
    missing = {name for name, value in values.items() if value is None}
    off = {"learning_rate", "max_length", "max_length_ratio", "patience", "quantize"}
    of_the_model = {"vocabulary_size", "normalize_first"}
    assert missing == {*of_the_model, "sampling", *off}
    assert values["preset"] == "small" and values["dtype"] == "float32"


@pytest.mark.parametrize(
    ("given", "max_tokens"), [(None, 256), (100, 100), (256, 256), (700, 256)]
)
def test_longest_pair_is_at_most_that_of_model(given, max_tokens):
    config = TrainingConfig(max_length=given)
    config.check_start()
    assert config.resolve(pairs=1000).max_tokens == max_tokens
    model = make_model(max_length=max_tokens - 1)  # to train further
    assert TrainingConfig().resolve(1000, model).max_tokens == max_tokens - 1
    assert TrainingConfig(max_tokens=7).resolve(1000, model).max_tokens == 7


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
def test_short_warmup_is_at_most_a_fifth_of_all_steps(total_steps, warmup_steps):
    config = TrainingConfig().resolve(3_000).with_short_warmup(total_steps)
    assert config.warmup_steps == warmup_steps
    constant = TrainingConfig(learning_rate=1e-4).resolve(3_000)
    assert constant.with_short_warmup(total_steps) == constant


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


def test_training_for_8_bits_is_short():
    config = TrainingConfig(quantize="int8").resolve(50_000)
    assert (config.epochs, config.patience, config.warmup_steps) == (5, 2, None)
    assert config.learning_rate == 2e-4
    assert "for int8 files" in str(config)
    own = {"epochs": 7, "patience": 3, "learning_rate": 0.5}
    config = TrainingConfig(quantize="int4", **own).resolve(50_000)
    assert {name: getattr(config, name) for name in own} == own
    config = TrainingConfig(quantize="int4", warmup_steps=9).resolve(50_000)
    assert (config.warmup_steps, config.learning_rate) == (9, None)
