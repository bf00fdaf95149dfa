"""A program: copies its input to standard error, without messages of TensorFlow's C++.

It is a process of its own so that what a program writes just before it aborts still
arrives. It is started by its path, with nothing of this package imported. What is not
such a message, such as a traceback, is copied as it is; so are fatal messages.
"""

import re
import sys

MESSAGE = re.compile(
    # TensorFlow's own: "2026-01-31 10:00:00.123456: I tensorflow/core/a.cc:12] text"
    rb"\d{4}-\d\d-\d\d [\d:.]+: [IWE] \S+:\d+\] "
    # abseil's: "I0000 00:00:1795345981.288059   22917 a.cc:12] text"
    rb"|[IWE]\d{4} [\d:.]+ +\d+ \S+:\d+\] "
    # abseil's first one, and LiteRT's
    rb"|(INFO|WARNING|ERROR): "
    # the second line of TensorFlow's message about the processor
    rb"|To enable the following instructions: "
)
NODE = b"\t [[{{node "  # where in the graph: the next line of a message, or of an error


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
