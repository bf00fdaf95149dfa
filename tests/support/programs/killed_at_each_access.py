"""Forks of this process, killed at each access to files in turn."""

import itertools
import os
import signal
import sys

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.truncate"}
remaining = None  # accesses until the end of this process


def die_at_zero():
    """Counts one access."""
    global remaining
    if remaining is not None:
        remaining -= 1
        if remaining < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def kills(run, check, name):
    """The number of forks that were killed before one of them ended.

    Args:
        run: function of the number of kills so far, called in a fork.
        check: the same, called in this process when the fork has ended.
        name: str. Part of the paths whose accesses are counted.
    """
    global remaining

    def count(event, arguments):
        if event in EVENTS and (name in str(arguments[0]) or event == "os.truncate"):
            die_at_zero()

    sys.addaudithook(count)  # called before files are opened, renamed, removed
    for number in itertools.count():
        child = os.fork()
        if child == 0:
            remaining = number
            run(number)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        check(number)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return number
