"""Where the time of one call of a `.tflite` file goes, by graph and operator.

    python tests/benchmarks/phone_profile.py FILE.tflite --text "..." --calls 50

Prints, for each graph of the file (the main one, and a condition and a body for each
loop), microseconds per call and how often it runs, and the same for its operators. The
time of a loop is what is left without the operators in it: copies of its state, what
XNNPACK computes, and the profiler's own work. The profiler counts whole microseconds;
the runtime's C library has it, and its Python package does not.
"""

import argparse
import ctypes
import importlib.util
from collections import Counter, defaultdict
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path

import numpy as np

CPU, WRITE = 1, 1  # LiteRT's numbers of the accelerator and of the lock
OPERATOR = 2  # and of such events
TYPE_BYTES = 512  # more than its description of a tensor's type has


class Event(ctypes.Structure):
    """What the runtime says of one event."""

    _fields_ = [
        ("tag", c_char_p),
        ("type", c_int),
        ("start", c_uint64),
        ("elapsed", c_uint64),
        ("memory", c_size_t * 6),
        ("node", c_uint64),
        ("graph", c_uint64),
        ("source", c_int),
    ]


class Profiler:
    """One signature, run and profiled.

    Args:
        path: path of the file.
        threads: int.
    """

    def __init__(self, path, threads=1):
        package = importlib.util.find_spec("ai_edge_litert")
        folder = Path(package.submodule_search_locations[0])
        self._library = ctypes.CDLL(str(folder / "libLiteRt.so"))
        environment, model = c_void_p(), c_void_p()
        self._call("CreateEnvironment", 0, None, byref(environment))
        self._call("CreateModelFromFile", environment, str(path).encode(), byref(model))
        options, self._kept = c_void_p(), []
        self._call("CreateOptions", byref(options))
        self._call("SetOptionsHardwareAccelerators", options, CPU)
        self._add(options, b"runtime_options_string", "enable_profiling = true\n")
        self._add(options, b"xnnpack", f"num_threads = {threads}\n")
        self._model = c_void_p()
        self._call(
            "CreateCompiledModel", environment, model, options, byref(self._model)
        )
        signature = c_void_p()
        self._call("GetModelSignature", model, c_size_t(0), byref(signature))
        self._inputs = self._buffers(environment, signature, "Input")
        self._outputs = self._buffers(environment, signature, "Output")
        self._profiler = c_void_p()
        self._call("CompiledModelGetProfiler", self._model, byref(self._profiler))

    def write(self, content):
        """Sets the first input: these bytes, and zeros after them."""
        address, size = c_void_p(), c_size_t()
        self._call("GetTensorBufferSize", self._inputs[0], byref(size))
        self._call("LockTensorBuffer", self._inputs[0], byref(address), WRITE)
        ctypes.memmove(address, content.ljust(size.value, b"\0"), size.value)
        self._call("UnlockTensorBuffer", self._inputs[0])

    def run(self, calls):
        """The events of so many calls, after some that warm up."""
        for count in (5, calls):
            self._call("ResetProfiler", self._profiler)
            self._call("StartProfiler", self._profiler)
            for _ in range(count):
                self._call(
                    "RunCompiledModel",
                    self._model,
                    c_size_t(0),
                    c_size_t(len(self._inputs)),
                    (c_void_p * len(self._inputs))(*self._inputs),
                    c_size_t(len(self._outputs)),
                    (c_void_p * len(self._outputs))(*self._outputs),
                )
            self._call("StopProfiler", self._profiler)
        count = c_int()
        self._call("GetNumProfilerEvents", self._profiler, byref(count))
        events = (Event * count.value)()
        self._call("GetProfilerEvents", self._profiler, count, events)
        return list(events)

    def _call(self, name, *arguments):
        status = getattr(self._library, f"LiteRt{name}")(*arguments)
        if status:
            raise RuntimeError(f"LiteRt{name} returned {status}")

    def _add(self, options, name, text):
        opaque = c_void_p()
        payload = ctypes.create_string_buffer(text.encode())
        nothing = ctypes.CFUNCTYPE(None, c_void_p)(lambda pointer: None)
        self._kept += payload, nothing  # what the library only points to
        self._call("CreateOpaqueOptions", name, payload, nothing, byref(opaque))
        self._call("AddOpaqueOptions", options, opaque)

    def _buffers(self, environment, signature, side):
        count = c_size_t()
        self._call(f"GetNumSignature{side}s", signature, byref(count))
        buffers = []
        for i in range(count.value):
            tensor, requirements, buffer = c_void_p(), c_void_p(), c_void_p()
            type_ = ctypes.create_string_buffer(TYPE_BYTES)
            self._call(
                f"GetSignature{side}TensorByIndex",
                signature,
                c_size_t(i),
                byref(tensor),
            )
            self._call("GetRankedTensorType", tensor, type_)
            self._call(
                f"GetCompiledModel{side}BufferRequirements",
                self._model,
                c_size_t(0),
                c_size_t(i),
                byref(requirements),
            )
            self._call(
                "CreateManagedTensorBufferFromRequirements",
                environment,
                type_,
                requirements,
                byref(buffer),
            )
            buffers.append(buffer)
        return buffers


def calls_of(events):
    """The operators of each call, those of a loop after the loop."""
    calls = [e for e in events if e.tag == b"Invoke" and e.start and e.graph == 0]
    operators = [e for e in events if e.type == OPERATOR and e.start]
    operators.sort(key=lambda e: (e.start, -e.elapsed))
    for call in calls:
        end = call.start + call.elapsed
        yield [e for e in operators if call.start <= e.start <= end]


def own_times(operators):
    """(graph, node, name) -> microseconds of one call, and how often it ran."""
    times, runs, loops = defaultdict(int), Counter(), []
    for operator in operators:
        end = operator.start + operator.elapsed
        while loops and end > loops[-1].start + loops[-1].elapsed + 1:  # rounded
            loops.pop()
        times[_key(operator)] += operator.elapsed
        runs[_key(operator)] += 1
        if loops:
            times[_key(loops[-1])] -= operator.elapsed
        if operator.tag == b"WHILE":
            loops.append(operator)
    return times, runs


def _key(operator):
    return operator.graph, operator.node, operator.tag.decode()


def rows(events):
    """The table, line by line: of all calls the time that one in ten is below."""
    own, runs = zip(*map(own_times, calls_of(events)), strict=True)
    times = {key: np.percentile([each[key] for each in own], 10) for key in own[0]}
    runs = runs[0]
    for graph in sorted({key[0] for key in times}):
        keys = [key for key in times if key[0] == graph]
        total, most = sum(times[key] for key in keys), max(runs[key] for key in keys)
        yield f"graph {graph}: {total:.0f} us, {len(keys)} operators, {most} runs"
        names = Counter()
        for key in keys:
            names[f"{key[2]} {key[1]}" if key[2] == "WHILE" else key[2]] += times[key]
        for name, time in names.most_common():
            if time >= max(1, total / 50):
                yield f"    {name:28}{time:8.0f}"


def main():
    parser = argparse.ArgumentParser(description="Profiles a file's operators.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--text", default="")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    profiler = Profiler(options.file, options.threads)
    profiler.write(options.text.encode())
    for row in rows(profiler.run(options.calls)):
        print(row)


if __name__ == "__main__":
    main()
