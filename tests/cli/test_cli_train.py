import ctypes
import os
import platform
import subprocess
import sys
import types
from pathlib import Path

import pytest

import keras_vanilla
from keras_vanilla._about import About
from keras_vanilla.cli import parser
from keras_vanilla.cli.train import _train, reuse_freed_memory
from keras_vanilla.training import TrainingConfig
from keras_vanilla.training.run_folder import RunFolder

GUIDE = Path(keras_vanilla.__file__).parent / "training" / "README.md"
COMMAND = "train --source x --target y --output z".split()
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in TrainingConfig.names()}
OPTIONS |= {"dtype": "--precision", "normalize_first": "--pre-norm"}


class Run:
    """Stands for a training that is already done."""

    config = TrainingConfig().resolve(9)
    description = "9 epochs"

    def __init__(self, *arguments, **named):
        pass

    def train(self):
        return types.SimpleNamespace(about=About())


FAULTS = """
import resource
import keras_vanilla_cli
import numpy as np

keras_vanilla_cli._prepare_package("keras_vanilla")  # it is not executed: no Keras
from keras_vanilla.cli.train import reuse_freed_memory

reuse_freed_memory()
np.ones(2**24, np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    np.ones(2**24, np.float32)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_memory_of_a_step_is_that_of_the_last_one():
    """64 MiB have 16,384 pages of 4 KiB, which fault once instead of each time."""
    environment = {k: v for k, v in os.environ.items() if k != "GLIBC_TUNABLES"}
    result = subprocess.run(
        [sys.executable, "-c", FAULTS], env=environment, capture_output=True, check=True
    )
    assert int(result.stdout) < 16_384 / 100


def test_tunables_of_the_environment_decide(monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=2")
    monkeypatch.setattr(ctypes, "CDLL", None)  # nothing can be called
    reuse_freed_memory()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_snapshot_is_announced_unless_it_may_be_overwritten(
    tmp_path, monkeypatch, capfd, overwrite
):
    monkeypatch.setattr("keras_vanilla.training.run.TrainingRun", Run)
    given = types.SimpleNamespace(
        corpus=[], validation=None, tokenizer=None, translator=None, about=About()
    )
    folder = RunFolder(tmp_path, overwrite)
    with folder.snapshots.writing():
        folder.snapshots.save(4, {})
    folder.results_path.write_text("{}")
    _train(None, folder, given, allow_changed=[])
    said = "has a snapshot after step 4" in capfd.readouterr().err
    assert said is not overwrite


def settings_of(*words):
    """The settings of a training that a command gives, without those left to it."""
    options = vars(parser().parse_args([*COMMAND, *words]))
    names = OPTIONS.keys() & options
    return {name: options[name] for name in names if options[name] is not None}


def test_a_command_without_options_has_the_settings_of_a_config():
    assert TrainingConfig(**settings_of()) == TrainingConfig()


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["--pre-norm"], {"normalize_first": True}),
        (["--label-smoothing", "0.2"], {"label_smoothing": 0.2}),
        (["--average-last", "3"], {"average_last": 3}),
        (["--patience", "4"], {"patience": 4}),
        (["--max-length", "100"], {"max_length": 100}),
        (["--learning-rate", "1e-4"], {"learning_rate": 1e-4}),
        (["--freeze", "encoder", "embeddings"], {"freeze": ("embeddings", "encoder")}),
        (["--quantize", "int4"], {"quantize": "int4"}),
        (["--clip-norm", "0.5"], {"clip_norm": 0.5}),
        (["--weight-decay", "1e-4"], {"weight_decay": 1e-4}),
        (["--sampling", "0.2"], {"sampling": 0.2}),
        (["--robust"], {"robust": True}),
        (["--max-length-ratio", "3"], {"max_length_ratio": 3.0}),
        (["--drop-duplicates"], {"drop_duplicates": True}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_option_is_a_setting(words, settings):
    assert TrainingConfig(**settings_of(*words)) == TrainingConfig(**settings)


@pytest.mark.parametrize("option", OPTIONS.values())
def test_every_setting_has_an_option_that_the_guide_names(option):
    commands = parser()._subparsers._group_actions[0].choices
    assert option in commands["train"]._option_string_actions
    assert option in GUIDE.read_text()
