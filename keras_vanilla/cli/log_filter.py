"""Filters messages of TensorFlow's C++ code while copying input to standard error.

It runs as a separate process, so that the last output of a program that aborts is still
copied. It is started by its path and does not import this package. Other text, such as
a traceback, is copied unchanged, and so are fatal messages.
"""

import re
import sys

MESSAGE = re.compile(
    # TensorFlow: "2026-01-31 10:00:00.123456: I tensorflow/core/a.cc:12] text"
    rb"\d{4}-\d\d-\d\d [\d:.]+: [IWE] \S+:\d+\] "
    # abseil: "I0000 00:00:1795345981.288059   22917 a.cc:12] text"
    rb"|[IWE]\d{4} [\d:.]+ +\d+ \S+:\d+\] "
    # abseil's first message, and LiteRT's
    rb"|(INFO|WARNING|ERROR): "
    # the second line of TensorFlow's message about the processor
    rb"|To enable the following instructions: "
)
NODE = b"\t [[{{node "  # graph node in the second line of a message or error


def main() -> None:
    """Runs the program until its input ends."""
    hidden = False
    for line in sys.stdin.buffer:
        hidden = bool(MESSAGE.match(line)) or hidden and line.startswith(NODE)
        if not hidden:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


if __name__ == "__main__":
    main()
