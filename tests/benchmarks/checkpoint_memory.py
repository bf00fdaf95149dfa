"""Memory that reading a checkpoint of another format takes, beside the file's size.

    python tests/benchmarks/checkpoint_memory.py FOLDER

Files of random matrices are written to FOLDER, 0.3 GB each, with PyTorch (both formats
of `torch.save`) and by `keras_vanilla.interop`. A fresh process for each file opens it,
reads its arrays one at a time, as a conversion does, and at last holds all of them.
Shown is the growth of the process's peak resident memory (VmHWM of Linux) after each of
the three, counted from the packages' import.
"""

import argparse
import gc
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from keras_vanilla.interop.files import (
    ctranslate2_file,
    safetensors_file,
    torch_file,
)
from keras_vanilla.interop.files.ctranslate2_file import quantize_int8

MATRICES, ROWS, COLUMNS = 73, 512, 2048
CONFIG, TOKENS = {"unk_token": "<unk>"}, ["<unk>"]
READERS = {
    ".safetensors": safetensors_file.read_safetensors,
    ".pt": torch_file.read_torch,
    "": ctranslate2_file.read_ctranslate2,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measure", type=Path, help="one file, as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.measure)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    make(options.folder)
    print("| file | size, MB | opened | one array at a time | all arrays held |")
    print("| --- | --- | --- | --- | --- |")
    for path in sorted(options.folder.iterdir()):
        size = (path / "model.bin" if path.is_dir() else path).stat().st_size
        command = [
            sys.executable,
            __file__,
            str(options.folder),
            "--measure",
            str(path),
        ]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        growth = json.loads(result.stdout.splitlines()[-1])
        shown = " | ".join(f"{max(each, 0):.0f}" for each in growth)
        print(f"| {path.name} | {size / 1e6:.0f} | {shown} |", flush=True)


def make(folder):
    """Files of the same matrices; four times as many in int8."""
    import torch

    random = np.random.default_rng(1)
    matrices = {
        f"layer_{i}/weight": random.normal(size=(ROWS, COLUMNS)).astype("float32")
        for i in range(MATRICES)
    }
    tensors = {name: torch.from_numpy(each) for name, each in matrices.items()}
    safetensors_file.write_safetensors(folder / "float32.safetensors", matrices)
    torch.save(tensors, folder / "zip.pt")
    torch.save(tensors, folder / "before-1.6.pt", _use_new_zipfile_serialization=False)
    quantised = {}
    for copy in range(4):
        for name, each in matrices.items():
            name = f"{copy}/{name}"
            quantised[name], quantised[f"{name}_scale"] = quantize_int8(each)
    for name, variables in ("float32", matrices), ("int8", quantised):
        model = ctranslate2_file.CTranslate2Model(
            variables, {}, CONFIG, [TOKENS], TOKENS
        )
        if not (folder / f"ctranslate2-{name}").exists():
            ctranslate2_file.write_ctranslate2(folder / f"ctranslate2-{name}", model)


def measured(path):
    """The growth of the peak, in MB, after each of the three."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    base = memory("VmRSS")
    opened = READERS[path.suffix](path)
    growth = [memory("VmHWM") - base]
    read = getattr(opened, "weights", None) or opened.__getitem__
    names = getattr(opened, "variables", opened)
    names = [name for name in names if not name.endswith("_scale")]
    for name in names:
        read(name)
    growth.append(memory("VmHWM") - base)
    held = [read(name) for name in names]
    growth.append(memory("VmHWM") - base)
    assert len(held) == len(names)
    return growth


def memory(what):
    """A line of the process's status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(what + ":"))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main()
