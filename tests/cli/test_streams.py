"""Standard streams that are closed, full, cut off or not UTF-8."""

import io
import os
import signal
import subprocess
import sys

import pytest

from keras_vanilla.cli import log_filter
from keras_vanilla.cli.streams import usable_streams

COMMAND_LINE = "import sys, keras_vanilla_cli; sys.exit(keras_vanilla_cli.main())"
# As COMMAND_LINE does, without executing the package, which imports Keras.
QUIET = """
import os, subprocess, sys
import keras_vanilla_cli
keras_vanilla_cli._prepare_package("keras_vanilla")
from keras_vanilla.cli.streams import quiet
with quiet():
    os.write(2, b"I0000 00:00:1795345981.288059   22917 cudart_stub.cc:31] hidden\\n")
    os.write(2, b"E0000 00:00:1795345981.288059   22917 cuda.cc:52] error\\n")
    {}
"""
posix_only = pytest.mark.skipif(os.name != "posix", reason="POSIX shells and signals")


def run_quiet(statements, **settings):
    """A process that runs statements with TensorFlow's messages hidden."""
    return subprocess.run(
        [sys.executable, "-c", QUIET.format(statements)],
        env=environment() | settings,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
    )


def in_shell(words, **settings):
    """The command line in a shell: `--help` or a mistake, which are quick."""
    return subprocess.run(
        ["sh", "-c", f'"$0" -c "{COMMAND_LINE}" {words}', sys.executable],
        **{"capture_output": True, **settings},
        env=environment(),
        text=True,
        timeout=600,
    )


def environment():
    """As of somebody who has set nothing for Python and TensorFlow."""
    hidden = ("PYTHONUNBUFFERED", "TF_CPP_MIN_LOG_LEVEL")
    return {name: value for name, value in os.environ.items() if name not in hidden}


@posix_only
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [(">&-", "Bad file descriptor"), ("> /dev/full", "No space left on device")],
)
def test_results_that_cannot_be_written_are_one_sentence(redirection, reason):
    if "full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    result = in_shell("--help " + redirection)
    assert result.stderr == f"keras-vanilla: standard output: {reason}.\n"
    assert result.returncode == 1


@posix_only
def test_a_closed_standard_error_loses_messages_alone():
    result = in_shell("--help 2>&-")
    assert result.returncode == 0 and "translate" in result.stdout
    result = in_shell("describe missing.tflite 2>&-")
    assert (result.returncode, result.stdout) == (1, "")


@posix_only
def test_a_reader_that_wants_no_more_ends_the_program_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    result = in_shell(
        "--help", capture_output=False, stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_text_is_utf8_whatever_the_locale(encoding, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    with usable_streams():
        print("Straße \udcff")  # a name of a file may hold such halves
        sys.stdout.flush()
    assert written.getvalue().decode().splitlines() == ["Straße \\udcff"]
    assert sys.stdout.encoding == encoding


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_messages_that_cannot_be_written_end_nothing():
    program = QUIET.format("from keras_vanilla.cli.console import say; say('lost')")
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-c", program]
        result = subprocess.run(words, env=environment(), stderr=full, timeout=600)
    assert result.returncode == 0


def test_what_aborts_the_process_is_shown():
    result = run_quiet("os.write(2, b'terminate called\\n'); os.abort()")
    assert result.stderr.splitlines()[0] == "terminate called"
    assert result.returncode != 0


def test_the_traceback_of_a_worker_process_is_shown():
    worker = "subprocess.run([sys.executable, '-c', 'raise ValueError(1)'])"
    assert run_quiet(worker).stderr.endswith("\nValueError: 1\n")


@pytest.mark.parametrize(("level", "hidden"), [("3", True), ("1", True), ("0", False)])
def test_a_log_level_hides_as_much_as_none_or_nothing(level, hidden):
    result = run_quiet("pass", TF_CPP_MIN_LOG_LEVEL=level)
    assert ("] hidden\n" not in result.stderr) is hidden


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-31 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN",
        "2026-01-31 10:00:00.123456: E external/xla/cuda_fft.cc:477] Unable",
        "WARNING: All log messages before absl::InitializeLog() is called are written",
        "W0131 10:00:00.123456 4567 gpu_device.cc:2344] Cannot dlopen",
        "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.",
        "To enable the following instructions: AVX2, in other operations, rebuild",
    ],
)
def test_messages_of_tensorflow_are_hidden(line):
    assert log_filter.MESSAGE.match(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-31 10:00:00.123456: F tensorflow/core/tensor.cc:852] Check failed",
        "F0000 00:00:1795345981.288059   22917 cpu_feature_guard.cc:31] AVX",
        "Traceback (most recent call last):",
        "ValueError: INFO: is no message",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "",
    ],
)
def test_everything_else_is_shown(line):
    assert not log_filter.MESSAGE.match(line.encode())


def test_a_graph_s_node_belongs_to_the_message_before_it():
    """TensorFlow writes one at the end of a data set, in two lines."""
    message = "I0000 00:00:1.2   22 local.cc:405] End of sequence\n"
    node = "\t [[{{node IteratorGetNext}}]]\n"
    shown = "tensorflow.errors.InternalError: broken\n" + node
    result = subprocess.run(
        [sys.executable, log_filter.__file__],
        input=message + node + shown,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert result.stderr == shown


@posix_only
def test_a_notebook_imports_without_messages_and_still_shows_last_words():
    statements = """
import os, keras_vanilla_cli
keras_vanilla_cli.import_quietly()
import keras_vanilla
keras_vanilla.Transformer  # the package is executed, and registered
os.write(2, b"I0000 00:00:1795345981.288059   22917 cudart_stub.cc:31] hidden\\n")
os.write(2, b"last words\\n")
os.abort()
"""
    result = subprocess.run(
        [sys.executable, "-c", statements],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    assert (result.returncode, result.stderr) == (-signal.SIGABRT, "last words\n")
