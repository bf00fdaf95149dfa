"""Standard streams that are closed, full, cut off or not UTF-8."""

import io
import os
import signal
import subprocess
import sys

import pytest

from keras_vanilla.cli.streams import usable_streams

COMMAND_LINE = "import sys, keras_vanilla_cli; sys.exit(keras_vanilla_cli.main())"
# As COMMAND_LINE does, without executing the package, which imports Keras.
QUIET = """
import os, subprocess, sys
import keras_vanilla_cli
keras_vanilla_cli._prepare_package("keras_vanilla")
from keras_vanilla.cli.console import say
from keras_vanilla.cli.streams import quiet
with quiet():
    {}
"""
HIDDEN = """\
WARNING: All log messages before absl::InitializeLog() is called are written
I0000 00:00:1795345981.288059   22917 cudart_stub.cc:31] Could not find
E0131 10:00:00.123456 4567 gpu_device.cc:2344] Cannot dlopen
INFO: Created TensorFlow Lite XNNPACK delegate for CPU.
"""
SHOWN = """\
2026-01-31 10:00:00.123456: F tensorflow/core/tensor.cc:852] Check failed
F0000 00:00:1795345981.288059   22917 cpu_feature_guard.cc:31] AVX
Traceback (most recent call last):
ValueError: INFO: is no message
\t [[{{node broken}}]]
terminate called after throwing an instance of 'std::bad_alloc'

"""
posix_only = pytest.mark.skipif(os.name != "posix", reason="POSIX shells and signals")


def run(program, stderr=subprocess.PIPE, **settings):
    """A process of somebody who has set nothing for Python and TensorFlow."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment() | settings,
        stderr=stderr,
        text=True,
        timeout=600,
    )


def environment():
    hidden = ("PYTHONUNBUFFERED", "TF_CPP_MIN_LOG_LEVEL")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def in_shell(words, **settings):
    """The command line in a shell: `--help` or a mistake, which are quick."""
    return subprocess.run(
        ["sh", "-c", f'"$0" -c "{COMMAND_LINE}" {words}', sys.executable],
        **{"capture_output": True, **settings},
        env=environment(),
        text=True,
        timeout=600,
    )


@posix_only
@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        ("--help >&-", 1, "keras-vanilla: standard output: Bad file descriptor.\n"),
        (
            "--help > /dev/full",
            1,
            "keras-vanilla: standard output: No space left on device.\n",
        ),
        ("--help 2>&-", 0, ""),
        ("describe missing.tflite 2>&-", 1, ""),
    ],
)
def test_unwritable_stream_is_one_sentence(words, status, error):
    if "full" in words and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    result = in_shell(words)
    assert (result.returncode, result.stderr) == (status, error)
    assert ("translate" in result.stdout) is (status == 0)


@posix_only
def test_closed_pipe_ends_program_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    result = in_shell(
        "--help", capture_output=False, stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_is_utf8_in_every_locale(encoding, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    with usable_streams():
        print("Straße \udcff")  # a name of a file may hold such halves
        sys.stdout.flush()
    assert written.getvalue().decode().splitlines() == ["Straße \\udcff"]
    assert sys.stdout.encoding == encoding


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_unwritable_messages_end_nothing():
    with open("/dev/full", "w") as full:
        assert run(QUIET.format("say('lost')"), stderr=full).returncode == 0


@pytest.mark.parametrize(
    ("level", "hides", "is_set"),
    [(None, True, "3"), ("1", True, "1"), ("0", False, "0")],
)
def test_only_messages_of_cpp_code_are_hidden(level, hides, is_set):
    program = QUIET.format(
        f"os.write(2, {(HIDDEN + SHOWN).encode()!r});"
        "print(os.environ['TF_CPP_MIN_LOG_LEVEL'], file=sys.stderr)"
    )
    settings = {} if level is None else {"TF_CPP_MIN_LOG_LEVEL": level}
    expected = (SHOWN if hides else HIDDEN + SHOWN) + f"{is_set}\n"
    received = run(program, **settings).stderr
    assert sorted(received.splitlines()) == sorted(expected.splitlines())


def test_last_words_and_tracebacks_are_shown():
    result = run(QUIET.format("os.write(2, b'terminate called\\n'); os.abort()"))
    assert result.stderr.splitlines()[0] == "terminate called"
    assert result.returncode != 0
    worker = "subprocess.run([sys.executable, '-c', 'raise ValueError(1)'])"
    assert run(QUIET.format(worker)).stderr.endswith("\nValueError: 1\n")


@posix_only
def test_notebook_imports_without_messages_and_shows_last_words():
    result = run(
        f"""
import os, keras_vanilla_cli
keras_vanilla_cli.import_quietly()
import keras_vanilla
keras_vanilla.Transformer  # the package is executed, and registered
os.write(2, {HIDDEN.encode()!r} + b"last words\\n")
os.abort()
"""
    )
    assert (result.returncode, result.stderr) == (-signal.SIGABRT, "last words\n")
