"""`keras-vanilla serve-web`."""

import argparse
import contextlib
import webbrowser
from functools import partial
from pathlib import Path
from threading import Thread

from keras_vanilla.cli.console import (
    PRETRAINED,
    add_command,
    model_name,
    model_path,
    say,
)

# Below the ports that systems assign (on Linux from 32768), and not used by any program
# known to us; 8765, the default of version 0.5.0, is used by AnkiConnect.
PORT = 29731


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands,
        "serve-web",
        run,
        "open a .tflite file, or a site, in a page that translates",
        needs_keras=False,
    )
    add = command.add_argument
    add(
        "model",
        type=partial(model_path, suffix=".tflite"),
        metavar="FILE.tflite|SITE",
        help=f"or {PRETRAINED}",
    )
    port = "port of 127.0.0.1 (%(default)s)"
    add("--port", type=int, default=PORT, metavar="N", help=port)
    add(
        "--runtime",
        metavar="FOLDER",
        help="where npm has installed @litertjs/core; otherwise it is fetched, once",
    )
    add("--no-browser", action="store_true", help="only print the address")


def run(options: argparse.Namespace) -> None:
    """Runs the command until Ctrl-C."""
    from keras_vanilla.web.runtime import runtime_folder
    from keras_vanilla.web.server import PageServer, check_model

    check_model(options.model)  # before anything is fetched
    is_site = Path(options.model).is_dir()
    runtime = None if is_site else runtime_folder(options.runtime, say)
    with PageServer(options.model, runtime, options.port) as server:
        print(
            f"{server.url} translates with {model_name(options.model)}. "
            "Ctrl-C stops it.",
            flush=True,
        )
        if not options.no_browser:
            # A browser that runs in the terminal would block the server.
            Thread(target=webbrowser.open, args=[server.url], daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
