"""Runs `strategy_worker.py` in processes of its own, and always ends them."""

import contextlib
import json
import socket
import subprocess
import sys

import numpy as np
from child_process import PROGRAMS, environment


def run_apart(folder, runs, devices, processes=2):
    """Results {name of run: {name: array}} of processes that share the work."""
    names = list(runs)
    parts = [
        {name: runs[name] for name in names[number::processes]}
        for number in range(processes)
    ]
    found = _results(folder, parts, [{}] * processes, devices)
    return {name: values for part in found for name, values in part.items()}


def run_workers(folder, runs, count=2):
    """Results of each of several processes that train together over loopback."""
    cluster = {"worker": [f"localhost:{port}" for port in free_ports(count)]}
    tasks = [{"type": "worker", "index": index} for index in range(count)]
    environments = [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks
    ]
    return _results(folder, [runs] * count, environments)


def free_ports(count):
    """Numbers of ports that nobody listens at; all held until all are known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


def _results(folder, runs, environments, devices=1):
    commands = [
        [
            sys.executable,
            str(PROGRAMS / "strategy_worker.py"),
            str(folder / f"{number}.npz"),
            str(devices),
            json.dumps(each),
        ]
        for number, each in enumerate(runs)
    ]
    _run_together(commands, environments, folder)
    return [
        _by_run(np.load(folder / f"{number}.npz")) for number in range(len(commands))
    ]


def _run_together(commands, environments, folder, timeout=900):
    with contextlib.ExitStack() as ended:
        processes = []
        for number, command in enumerate(commands):
            log = ended.enter_context(open(folder / f"{number}.log", "wb"))
            process = subprocess.Popen(
                command,
                env=environment(**environments[number]),
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            ended.callback(process.wait)
            ended.callback(process.kill)  # the last one in is called first
            processes.append(process)
        codes = [process.wait(timeout) for process in processes]
    logs = [
        (folder / f"{number}.log").read_text()[-3000:] for number in range(len(codes))
    ]
    assert not any(codes), "\n".join(logs)


def _by_run(arrays):
    found = {}
    for path, array in arrays.items():
        run, _, name = path.partition("/")
        found.setdefault(run, {})[name] = array
    return found
