import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import keras_vanilla
from keras_vanilla.cli import parser
from keras_vanilla.cli.train import reuse_freed_memory
from keras_vanilla.training import TrainingConfig

GUIDE = Path(keras_vanilla.__file__).parent / "training" / "README.md"
COMMAND = "train --source x --target y --output z".split()

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
def test_steps_reuse_freed_memory():
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


# A value of each setting, other than its default.
VALUES = {
    "preset": "tiny",
    "normalize_first": True,
    "max_length": 100,
    "vocabulary_size": 300,
    "separate_vocabularies": True,
    "dtype": "mixed_bfloat16",
    "recipe": "paper",
    "epochs": 3,
    "tokens_per_batch": 512,
    "warmup_steps": 7,
    "dropout": 0.25,
    "learning_rate": 1e-4,
    "cooldown_epochs": 2,
    "freeze": ("embeddings", "encoder"),
    "quantize": "int4",
    "label_smoothing": 0.2,
    "clip_norm": 0.5,
    "weight_decay": 1e-4,
    "sampling": 0.2,
    "robust": True,
    "average_last": 3,
    "patience": 4,
    "seed": 9,
    "max_tokens": 40,
    "max_length_ratio": 3.0,
    "drop_duplicates": True,
    "micro_batches": 2,
}


@pytest.mark.parametrize("name", TrainingConfig.names())
def test_setting_is_an_option_that_the_guide_names(name):
    value = VALUES[name]
    flags = {"dtype": "--precision", "normalize_first": "--pre-norm"}
    option = flags.get(name, f"--{name.replace('_', '-')}")
    words = {True: []}.get(value, value if isinstance(value, tuple) else [str(value)])
    options = vars(parser().parse_args([*COMMAND, option, *words]))
    settings = {key: options[key] for key in options.keys() & VALUES.keys()}
    assert TrainingConfig(**settings) == TrainingConfig(**{name: value})
    assert option in GUIDE.read_text()
