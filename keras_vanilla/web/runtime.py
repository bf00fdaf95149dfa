"""LiteRT.js, which runs the model in the page; npm downloads it once (12 MB)."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

PAGE = Path(__file__).parent / "page"
PACKAGE = "node_modules/@litertjs/core"
PINS = ("package.json", "package-lock.json")
OFFER = "--runtime FOLDER names a folder where npm has installed it elsewhere."


def runtime_folder(
    folder: str | None = None, say: Callable[[str], None] = print
) -> Path:
    """Returns npm's folder `@litertjs` with the version in the page's lock file.

    If it is not in the user's cache, npm installs it there and checks the hashes in the
    lock file.

    Args:
        folder: str or None. Folder of an existing installation; None means the cache.
        say: function that is called with a sentence before a step that takes a while.
    Raises:
        ValueError: if the folder does not have this version.
        RuntimeError: if npm is not installed, or the download fails.
    """
    root = Path(folder) if folder else _cache() / f"litertjs-{_version()}"
    if not folder and not root.exists():
        say(f"Fetching LiteRT.js {_version()} (12 MB) into {root}, once.")
        _install(root)
    installed = _installed(root)
    if installed != _version():
        remedy = "" if folder else " Delete that folder and try again."
        raise ValueError(
            f"{root} must hold @litertjs/core {_version()} as npm installs it. "
            f"Received: {installed or 'a folder without it'}.{remedy}"
        )
    return (root / PACKAGE).parent


def _version():
    lock = json.loads((PAGE / "package-lock.json").read_text(encoding="utf-8"))
    return lock["packages"][PACKAGE]["version"]


def _installed(root):
    """Returns the version in a folder, or None."""
    try:
        description = (root / PACKAGE / "package.json").read_text(encoding="utf-8")
    except OSError:
        return None
    return json.loads(description)["version"]


def _cache():
    """Returns the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "keras_vanilla"


def _install(root):
    """Installs into a temporary folder, and renames it when it is complete."""
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(
            f"npm (https://nodejs.org), which fetches LiteRT.js, is not installed. "
            f"{OFFER}"
        )
    root.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=root.parent))
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    command += ["--fetch-retries=1", "--loglevel=error"]
    try:
        for name in PINS:
            shutil.copy(PAGE / name, unfinished)
        result = subprocess.run(command, cwd=unfinished, capture_output=True, text=True)
        if result.returncode:
            reason = " ".join(result.stderr.split())[:300]
            raise RuntimeError(f"npm could not install LiteRT.js: {reason} {OFFER}")
        if not root.exists():  # another process may have been faster
            os.replace(unfinished, root)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
