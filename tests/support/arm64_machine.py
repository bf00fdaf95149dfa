"""An ARM64 machine that `.ci/arm64` made: Python and LiteRT for it, emulated."""

import os
import shutil
import subprocess

from translate_texts import translated_elsewhere

FOLDER = os.environ.get("KERAS_VANILLA_ARM64")
EMULATOR = "qemu-aarch64-static"
# As in the folder's cpuinfo. QEMU 7.2's own choice has SME, with which LiteRT 2.1 and
# later multiplies several rows in 8 bits wrongly.
PROCESSOR = "cortex-a76"
# LiteRT asks the kernel which processor this is, and would hear of the real one.
AS_ROOT_OF_ITS_MOUNTS = ("unshare", "--map-root-user", "--mount", "bash", "-c")


def why_not():
    """Why there is none here, in words; None if there is."""
    if not FOLDER:
        return "KERAS_VANILLA_ARM64 does not name a folder that .ci/arm64 made"
    if not shutil.which(EMULATOR):
        return f"{EMULATOR} is not installed"
    mounted = subprocess.run([*AS_ROOT_OF_ITS_MOUNTS, _mount()], capture_output=True)
    return "mounts are not allowed here" if mounted.returncode else None


def translated(paths, texts):
    """For each file the translations of the texts."""
    python = f"{FOLDER}/root/usr/bin/python3.11"
    emulator = f"{EMULATOR} -cpu {PROCESSOR}"
    emulated = f'exec {emulator} -L "{FOLDER}/root" "{python}" "$@"'
    command = [*AS_ROOT_OF_ITS_MOUNTS, f"{_mount()} && {emulated}", "-"]
    environment = {**os.environ, "PYTHONPATH": f"{FOLDER}/site", "PYTHONHOME": ""}
    return translated_elsewhere(command, paths, texts, env=environment)


def _mount():
    return f'mount --bind "{FOLDER}/cpuinfo" /proc/cpuinfo'
