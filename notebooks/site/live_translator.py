"""The translator that runs in the home page."""

import html
import shutil
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.errors import ConfigError
from sphinx.util import logging

from keras_vanilla.export import read_description
from keras_vanilla.pretrained import pretrained_file
from keras_vanilla.translation import Translator
from keras_vanilla.web.server import MODEL, check_model
from keras_vanilla.web.site import write_site

LOG = logging.getLogger(__name__)
FOLDER = "live"  # of the site
RUNTIME_MB = 10  # what a browser loads of LiteRT.js
LIVE = """
<div class="live">
<p><b>{name}</b></p>
<p><button type="button" class="live-open" data-page="{folder}/index.html">Translate
here</button> <a href="{folder}/index.html">on a page of its own</a>{inside}</p>
<p>The browser computes everything, and the text stays on the device. It loads
{megabytes:.0f} MB once: the model and its runtime.</p>
<noscript><p>The translator needs JavaScript and WebAssembly.</p></noscript>
</div>
"""
INSIDE = """ · <a href="{folder}/inside/index.html">look inside</a>: attention, the next
pieces, the tree of beam search"""


def write_translator(app):
    """Writes the translator's page into the site."""
    folder = app.outdir / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    given = app.config.live_translator
    model = Path(given) if given else pretrained_file("en-fr", ".tflite")
    app.env.why_not_live = ""
    if not model.exists():
        raise ConfigError(f"There is no translator at {given}.")
    if model.is_dir():
        check_model(model)
        shutil.copytree(model, folder)
        return
    saved = model.with_suffix(".keras")  # what the page that looks inside needs
    translator = Translator.load(saved) if saved.exists() else None
    settings = {"check": "structure"} if translator else {}
    runtime = app.config.live_runtime or None
    try:
        write_site(translator, folder, runtime, LOG.info, model=model, **settings)
    except RuntimeError as error:  # LiteRT.js cannot be fetched
        LOG.info("The home page has no translator: %s", error)
        app.env.why_not_live = "LiteRT.js, which runs it, could not be fetched"


class LiveTranslator(Directive):
    """The part of the home page with the translator, or why there is none."""

    def run(self):
        """The nodes of the part."""
        env = self.state.document.settings.env
        if env.why_not_live:
            sentence = (
                f"There is no translator in this copy of the site: {env.why_not_live}. "
            )
            command = nodes.literal("", "keras-vanilla serve-web FILE.tflite")
            paragraph = nodes.paragraph("", sentence)
            paragraph += [command, nodes.Text(" opens the same page on your machine.")]
            return [nodes.note("", paragraph)]
        folder = env.app.outdir / FOLDER
        has_inside = (folder / "inside.tflite").exists()
        content = LIVE.format(
            folder=FOLDER,
            name=html.escape(read_description(folder / MODEL).name),
            inside=INSIDE.format(folder=FOLDER) if has_inside else "",
            megabytes=(folder / MODEL).stat().st_size / 1e6 + RUNTIME_MB,
        )
        return [nodes.raw("", content, format="html")]


def setup(app):
    """Registers the extension."""
    app.add_config_value("live_translator", "", "env", str)
    app.add_config_value("live_runtime", "", "", str)
    app.add_directive("live-translator", LiveTranslator)
    app.connect("builder-inited", write_translator)
    app.connect("env-get-outdated", lambda *_: ["index"])
    return {"parallel_read_safe": True, "parallel_write_safe": True}
