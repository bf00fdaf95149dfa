"""ARM machines that `.ci/arm` made: Python and a runtime for each, emulated."""

import os
import shutil
import subprocess
from pathlib import Path

from translate_texts import translated_elsewhere

FOLDER = os.environ.get("KERAS_VANILLA_ARM")
# LiteRT asks the kernel which processor this is, and would hear of the real one.
AS_ROOT_OF_ITS_MOUNTS = ("unshare", "--map-root-user", "--mount", "bash", "-c")


class Arm32:
    """32 bits: TensorFlow Lite 2.14."""

    name = "arm32"
    emulator = "qemu-arm-static"
    options = ()
    export_settings = {"oldest_runtime": "2.13"}  # of files that it runs

    def __init__(self):
        self.folder = Path(FOLDER or "", self.name)

    def why_not(self):
        """Why there is none here, in words; None if there is."""
        if not FOLDER:
            return "KERAS_VANILLA_ARM does not name a folder that .ci/arm made"
        if not (self.folder / "ready").exists():
            return f".ci/arm did not make {self.folder}"
        if not shutil.which(self.emulator):
            return f"{self.emulator} is not installed"
        return None

    def translated(self, paths, texts):
        """For each file the translations of the texts, or why it does not run."""
        environment = {
            **os.environ,
            "PYTHONHOME": "",
            "PYTHONPATH": self.folder / "site",
        }
        return translated_elsewhere(self._python(), paths, texts, env=environment)

    def _python(self):
        root = self.folder / "root"
        python = root / "usr" / "bin" / "python3.11"
        return [self.emulator, *self.options, "-L", root, python]


class Arm64(Arm32):
    """64 bits: LiteRT on a Cortex-A76."""

    name = "arm64"
    emulator = "qemu-aarch64-static"
    # As in the folder's cpuinfo. QEMU 7.2's own choice has SME, with which LiteRT 2.1
    # and later multiplies several rows in 8 bits wrongly.
    options = ("-cpu", "cortex-a76")
    export_settings = {}

    def why_not(self):
        """As of `Arm32`."""
        if reason := super().why_not():
            return reason
        mounted = subprocess.run(
            [*AS_ROOT_OF_ITS_MOUNTS, self._mount()], capture_output=True
        )
        return "mounts are not allowed here" if mounted.returncode else None

    def _python(self):
        run_with_mount = f'{self._mount()} && exec "$0" "$@"'
        return [*AS_ROOT_OF_ITS_MOUNTS, run_with_mount, *super()._python()]

    def _mount(self):
        return f'mount --bind "{self.folder}/cpuinfo" /proc/cpuinfo'


MACHINES = {machine.name: machine for machine in (Arm64, Arm32)}
