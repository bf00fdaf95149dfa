"""Python programs that tests start; they import by name what the tests share."""

import os
import subprocess
import sys
from pathlib import Path

import keras_vanilla

SUPPORT = Path(__file__).parent
PROGRAMS = SUPPORT / "programs"
PATHS = [
    Path(keras_vanilla.__file__).parents[1],
    SUPPORT,
    *(SUPPORT / name for name in ("oracles", "fakes", "programs")),
]


def environment(backend="tensorflow", **variables):
    """That of this process, on a backend and with the paths of the tests' modules."""
    return {
        **os.environ,
        "KERAS_BACKEND": backend,
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(map(str, PATHS)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **variables,
    }


def run(program, *arguments, python=sys.executable, **settings):
    """What a program prints, which must end well; `settings` of `environment`."""
    done = subprocess.run(
        [str(each) for each in (python, program, *arguments)],
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
