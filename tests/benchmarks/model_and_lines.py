"""The arguments of benchmarks of a model and the lines of a file."""

import argparse
from itertools import islice


def parser(program, lines):
    """A parser of MODEL, --source and --lines.

    Args:
        program: str, the docstring of the benchmark.
        lines: int, how many are read unless told.
    """
    parser = argparse.ArgumentParser(description=program.splitlines()[0])
    parser.add_argument("model", help="a .keras file")
    parser.add_argument("--source", required=True, help="one sentence per line")
    parser.add_argument(
        "--lines", type=int, default=lines, help=f"the first ones ({lines})"
    )
    return parser


def first_lines(path, count):
    """The first lines of a file."""
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, count)]
