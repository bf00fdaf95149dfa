"""The ARM machine that `.ci/arm` made: Python and LiteRT on an emulated Cortex-A76."""

import os
import shutil
import subprocess
from pathlib import Path

from translate_texts import translated_elsewhere

FOLDER = Path(os.environ.get("KERAS_VANILLA_ARM", ""), "arm64")
EMULATOR = "qemu-aarch64-static"
# As in the folder's cpuinfo. QEMU 7.2's own choice has SME, with which LiteRT 2.1
# and later multiplies several rows in 8 bits wrongly.
PROCESSOR = ("-cpu", "cortex-a76")
# LiteRT asks the kernel which processor this is, and would hear of the real one.
AS_ROOT_OF_ITS_MOUNTS = ("unshare", "--map-root-user", "--mount", "bash", "-c")
MOUNT = f'mount --bind "{FOLDER}/cpuinfo" /proc/cpuinfo'


def why_not():
    """Why there is none here, in words; None if there is."""
    if "KERAS_VANILLA_ARM" not in os.environ:
        return "KERAS_VANILLA_ARM does not name a folder that .ci/arm made"
    if not (FOLDER / "ready").exists():
        return f".ci/arm did not make {FOLDER}"
    if not shutil.which(EMULATOR):
        return f"{EMULATOR} is not installed"
    mounted = subprocess.run([*AS_ROOT_OF_ITS_MOUNTS, MOUNT], capture_output=True)
    return "mounts are not allowed here" if mounted.returncode else None


def translated(paths, texts):
    """For each file the translations of the texts, or why it does not run."""
    root = FOLDER / "root"
    python = [EMULATOR, *PROCESSOR, "-L", root, root / "usr" / "bin" / "python3.11"]
    run_with_mount = f'{MOUNT} && exec "$0" "$@"'
    command = [*AS_ROOT_OF_ITS_MOUNTS, run_with_mount, *python]
    environment = {**os.environ, "PYTHONHOME": "", "PYTHONPATH": FOLDER / "site"}
    return translated_elsewhere(command, paths, texts, env=environment)
