"""Programs that read lines and write as many, as translators."""

import shlex
import sys

import pytest

from keras_vanilla.bulk import LineCommand, LineTranslation, open_line_translator


def program(code):
    """A command that runs Python with `lines`, the lines of its input as bytes."""
    start = "import sys; lines = sys.stdin.buffer.read().splitlines(); "
    start += "write = sys.stdout.buffer.write; "
    return shlex.join([sys.executable, "-c", start + code])


def test_each_line_has_the_line_that_the_program_writes():
    command = program("[write(line.upper() + b'\\n') for line in lines]")
    texts = ["guten tag", "", "fünf", "  two spaces"]
    results = open_line_translator(LineCommand(command))(texts)
    assert results[::3] == [
        LineTranslation("GUTEN TAG"),
        LineTranslation("  TWO SPACES"),
    ]
    assert [result.text for result in results[1:3]] == ["", "FüNF"]


def test_the_last_line_needs_no_end_and_no_lines_need_no_program():
    command = LineCommand(program("write(b'one')"))
    assert command(["eins"]) == [LineTranslation("one")]
    assert LineCommand("no-such-program")([]) == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("write(b'one\\n')", "a line for each of 2. Received: 1 lines"),
        ("write(b'1\\n2\\n3\\n')", "a line for each of 2. Received: 3 lines"),
        (
            "write(b'one\\nca\\xe9\\n')",
            "must write UTF-8. Received: byte 0xe9 in line 2",
        ),
    ],
)
def test_other_output_is_refused(code, message):
    with pytest.raises(ValueError, match=message):
        LineCommand(program(code))(["eins", "zwei"])


def test_a_program_that_fails_is_quoted():
    command = LineCommand(program("sys.exit('no model')"))
    with pytest.raises(RuntimeError, match="failed with status 1: no model"):
        command(["eins"])


def test_a_command_without_a_program_is_refused():
    with pytest.raises(ValueError, match="must name a program. Received: ' '"):
        LineCommand(" ")


@pytest.mark.parametrize("settings", [{"beam_size": 4}, {"threads": 1}])
def test_a_program_takes_no_settings(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"Received: {name} and the command 'cat'"):
        open_line_translator(LineCommand("cat"), **settings)
