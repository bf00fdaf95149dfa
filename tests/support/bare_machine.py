"""Hides from the tests what some machines have and others do not: settings and fonts.

What passes with it passes on a machine with nothing but Python. `conftest.py` calls it
before Keras is imported; child processes inherit the environment. `.ci/run` also hides
the home folder and the locale.
"""

import atexit
import importlib.util
import os
import shutil
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
    if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the processors
        os.environ["TF_NUM_INTRAOP_THREADS"] = "1"


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
