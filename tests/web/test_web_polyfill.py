"""The Translator API of browsers that the web module implements, in two browsers."""

import re
import shutil
import subprocess

import pytest
from web_setting import FOLDER, NEEDS_NODE, in_python, node

from keras_vanilla.pretrained import pretrained_file
from keras_vanilla.web.runtime import PAGE

pytestmark = [pytest.mark.full, NEEDS_NODE]


def of_the_guide():
    """The HTML that export/web/README.md begins with, and its code for use offline."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    html = re.search("```html\n(.*?)```", readme, re.DOTALL)[1]
    offline = readme.split("\n### Offline\n")[1]
    return html, re.findall("```js\n(.*?)```", offline, re.DOTALL)[:2]


@pytest.fixture
def host(text_file, litertjs, unseen_sentences):
    """What polyfill.test.mjs serves, and what LiteRT in Python translates."""
    pretrained = pretrained_file("en-fr", ".tflite")
    html, offline = of_the_guide()
    sentence = re.search(r"translate\('(.+?)'\)", html)[1]
    ((_, translation),) = in_python(pretrained, [sentence])
    return {
        "page": str(PAGE),
        "runtime": f"{litertjs}/node_modules/@litertjs",
        "model": str(text_file),
        "texts": in_python(text_file, unseen_sentences[:5]),
        "guide": {
            "html": html,
            "offline": offline,
            "text": translation,
            "model": str(pretrained),
        },
    }


PARTS = pytest.mark.parametrize("part", ["interface", "polyfill"])


@PARTS
def test_chromium_has_specified_interface(part, setting, host, tmp_path):
    arguments = ["--host-resolver-rules=MAP insecure.test 127.0.0.1"]
    node(part, {**setting, **host, "arguments": arguments}, tmp_path)


@PARTS
def test_firefox_has_specified_interface(part, host, tmp_path):
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        pytest.skip("no Firefox is installed")
    setting = {"firefox": firefox, **host}
    settings = {"options": ["--experimental-websocket"], "timeout": 240}
    try:
        node(part, setting, tmp_path, **settings)
    except subprocess.TimeoutExpired:  # headless Firefox sometimes stops answering
        node(part, setting, tmp_path, **settings)
