"""The site of notebooks/site in a browser: export/web/test reads it."""

import functools
import os
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from web_setting import StaticFiles, node, running

pytestmark = pytest.mark.full


def test_everybody_can_read_documentation(setting, tmp_path):
    if not (built := os.environ.get("KERAS_VANILLA_SITE")):
        pytest.skip("KERAS_VANILLA_SITE names no documentation, as .ci/run builds it")
    pages = [path.relative_to(built) for path in Path(built).rglob("*.html")]
    left_out = "live", "_modules"  # the translator's page has its own tests
    setting["pages"] = [str(p) for p in pages if p.parts[0] not in left_out]
    handler = functools.partial(StaticFiles, directory=built)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with running(server):
        setting["urls"] = {"documentation": f"http://127.0.0.1:{server.server_port}/"}
        node("documentation", setting, tmp_path)
