"""The site of notebooks/site has all public names, and needs no network."""

import importlib.util
import os
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import keras_vanilla

CHECKOUT = Path(__file__).resolve().parents[1]
NEEDED = ("sphinx", "myst_nb", "furo")
LOADING = {"img", "script", "iframe", "source", "video", "audio", "embed", "input"}
LOADED_BY_LINK = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}
# Modules without `__all__`, and a name that each must show.
WITHOUT_LIST = {"cli": "main", "quickstart": "run", "web": "site.write_site"}

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site: what .ci/run has built, or else built here."""
    if built := os.environ.get("KERAS_VANILLA_SITE"):
        return Path(built)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed, of the extra docs: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-M", "html", ".", str(folder)]
    options = ["-c", "notebooks/site", "-W", "--keep-going", "-q", "-j", "2"]
    result = subprocess.run(
        [*build, *options], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    """Each page of the documentation, parsed, by its path."""
    live = site / "live"
    paths = [path for path in site.rglob("*.html") if live not in path.parents]
    return {path: Page(path) for path in paths}


class Page(HTMLParser):
    """What a page loads, where it links to, and the ids of its parts."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.ids, self.scripts = [], [], set(), []
        self.pictures = []  # their alternative texts
        self.text = path.read_text(encoding="utf-8")
        self._in_script = False
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self._in_script = tag == "script"
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "img":
            self.pictures.append(values.get("alt", ""))
        if tag in LOADING:
            self.loaded += [values[n] for n in ("src", "srcset") if values.get(n)]
        if tag == "object":
            self.loaded.append(values.get("data", ""))
        if tag == "link" and LOADED_BY_LINK & set(values.get("rel", "").split()):
            self.loaded.append(values["href"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts.append(data)


@pytest.fixture(scope="module")
def documented(site):
    """The names in the site's inventory of objects, each with its page."""
    *_, body = (site / "objects.inv").read_bytes().split(b"\n", 4)
    lines = zlib.decompress(body).decode().splitlines()
    matches = (re.match(r"(\S+) py:\w+ \S+ (\S+) ", line) for line in lines)
    return {m[1]: m[2].replace("$", m[1]) for m in matches if m}


def modules():
    attributes = {name: getattr(keras_vanilla, name) for name in keras_vanilla.__all__}
    return {n: a for n, a in attributes.items() if isinstance(a, ModuleType)}


def public_names():
    names = {f"keras_vanilla.{name}" for name in keras_vanilla.__all__}
    for name, module in modules().items():
        listed = getattr(module, "__all__", None) or [WITHOUT_LIST[name]]
        names |= {f"keras_vanilla.{name}.{each}" for each in listed}
    return names


def test_pictures_have_alternative_texts(pages):
    texts = [
        text
        for path, page in pages.items()
        if path.parent.name == "notebooks"
        for text in page.pictures
    ]
    assert len(texts) > 70
    assert all(" " in text and "_images" not in text for text in texts)


def test_refused_methods_are_not_in_reference(documented):
    assert "keras_vanilla.translation.Translator.translate" in documented
    assert "keras_vanilla.translation.Translator.fit" not in documented


def test_public_names_are_in_reference(documented):
    assert public_names() - documented.keys() == set()


def test_pages_load_from_no_other_host(site, pages):
    for path, page in pages.items():
        for address in page.loaded:
            assert not re.match(r"(\w+:)?//", address), (path, address)
        assert not re.search(r"https?://", "".join(page.scripts)), path
    for path in (site / "_static").rglob("*.css"):
        style = path.read_text(encoding="utf-8")
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style), path


def test_links_lead_somewhere(site, pages):
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            if re.match(r"\w+:", link):
                continue
            address, _, anchor = link.partition("#")
            target = (path.parent / unquote(address.partition("?")[0])).resolve()
            target = path if not address else target
            assert target.is_file(), (path, link)
            if anchor and target in pages:
                assert unquote(anchor) in pages[target].ids, (path, link)


def test_pages_name_no_local_folder(site, pages):
    texts = [page.text for page in pages.values()]
    texts.append((site / "searchindex.js").read_text(encoding="utf-8"))
    assert not any(str(CHECKOUT) in text or str(site) in text for text in texts)


def test_home_page_has_translator_or_says_so(site, pages):
    text, links = pages[site / "index.html"].text, pages[site / "index.html"].links
    has_one = (site / "live" / "index.html").exists()
    assert ("live/index.html" in links) == has_one
    assert ("There is no translator in this copy" in text) != has_one
