"""Both pages in Firefox, where there is one."""

import shutil

import pytest
from web_setting import NEEDS_NODE, in_python, node, running

from keras_vanilla.web.server import PageServer
from keras_vanilla.web.site import write_site

pytestmark = [pytest.mark.full, NEEDS_NODE]
LIMITS = {"max_bytes": 131, "max_source_length": 29, "max_length": 59}


def test_firefox_translates_and_shows_inside(
    trained_translator, litertjs, unseen_sentences, tmp_path
):
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        pytest.skip("no Firefox is installed")
    site = tmp_path / "site"
    settings = {"quantize": None, "check": "structure", **LIMITS}
    write_site(trained_translator, site, litertjs, **settings)
    texts = in_python(site / "translator.tflite", unseen_sentences[:30])
    with running(server := PageServer(site)):
        setting = {"firefox": firefox, "url": server.url, "texts": texts}
        node("firefox", setting, tmp_path, options=["--experimental-websocket"])
