"""Files that many tests need, made by the first process of a test run that asks.

`.ci/run` names a folder that both tiers, which are two runs, have in common.
"""

import os
import time
from pathlib import Path

from keras_vanilla._atomic_write import atomic_path
from keras_vanilla._folder_lock import FolderInUse, folder_lock


def made_once(tmp_path_factory, name, make):
    """The path of a file or folder that all processes of this test run share.

    Args:
        tmp_path_factory: pytest's.
        name: str. The file's name.
        make: function of a path, which writes it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # a worker's own folder is inside the run's
    folder = Path(os.environ.get("KERAS_VANILLA_MADE_ONCE", folder / "made-once"))
    path = folder / name
    while not path.exists():
        try:
            with folder_lock(path.parent / f"lock-of-{name}"):
                if not path.exists():
                    with atomic_path(path) as unfinished:
                        make(unfinished)
        except FolderInUse:
            time.sleep(0.2)
    return path
