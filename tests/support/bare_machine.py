"""Hides from the tests what machines differ in: settings, fonts, an ignored Ctrl-C.

What passes with it passes on a machine with nothing but Python. `conftest.py` calls it
before Keras is imported; child processes inherit the environment. `.ci/run` also hides
the home folder and the locale.
"""

import atexit
import importlib.util
import os
import shutil
import signal
import tempfile
from pathlib import Path

OF_THE_USER = ("KERAS_", "TF_", "XLA_", "JAX_", "MPL")
OURS = ("KERAS_VANILLA_",)


def hide_settings():
    """Removes the user's settings of Keras, its backends and matplotlib."""
    for name in list(os.environ):
        if name.startswith(OF_THE_USER) and not name.startswith(OURS):
            del os.environ[name]
    folder = tempfile.mkdtemp(prefix="bare-machine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["KERAS_HOME"] = folder
    os.environ["MPLCONFIGDIR"] = folder
    # The tests' models take longer to optimise than to run.
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"


def share_processors():
    """Gives each of as many workers as processors one of them, for its children too.

    Threads of one that wait for work would take time of the other.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        if len(processors) == int(os.environ["PYTEST_XDIST_WORKER_COUNT"]):
            number = int(worker.removeprefix("gw"))
            os.sched_setaffinity(0, {processors[number]})


def heed_ctrl_c():
    """Undoes what a shell does to a run in its background: that and its children
    ignore Ctrl-C, which some tests send.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def hide_fonts():
    """Leaves matplotlib the fonts that it brings, here and in child processes."""
    if importlib.util.find_spec("matplotlib") is None:
        return
    import matplotlib
    from matplotlib import font_manager

    fonts, own = font_manager.fontManager, matplotlib.get_data_path()
    fonts.ttflist = [font for font in fonts.ttflist if font.fname.startswith(own)]
    fonts.afmlist = [font for font in fonts.afmlist if font.fname.startswith(own)]
    name = f"fontlist-v{fonts.__version__}.json"
    font_manager.json_dump(fonts, Path(matplotlib.get_cachedir(), name))
