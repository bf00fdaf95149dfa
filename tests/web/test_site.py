"""A site: the page, its runtime and two files of one model, in one folder."""

import contextlib
import io
import json
import re
from urllib.request import urlopen

import pytest
from web_setting import make_runtime, running

from keras_vanilla import export
from keras_vanilla.cli import main
from keras_vanilla.pretrained import pretrained_file
from keras_vanilla.web.runtime import PAGE
from keras_vanilla.web.server import PageServer
from keras_vanilla.web.site import write_site

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = make_runtime(tmp_path_factory.mktemp("installed"))
    wasm = folder / "node_modules" / "@litertjs" / "core" / "wasm"
    for name in ("litert_threaded.wasm", "litert_jspi.js", "litert.js.map"):
        (wasm / name).write_text("not loaded by the page")
    return folder


@pytest.fixture(scope="module")
def written(small_translator, installed, tmp_path_factory):
    """A site as the command writes it, and what the command says."""
    folder = tmp_path_factory.mktemp("host")
    model, site = folder / "model.keras", folder / "en-nl"
    small_translator.save(model)
    options = ["--form", "site", "--runtime", str(installed), "--check", "structure"]
    options += ["--beam-size", "2", "--outputs", "alignment", "--max-bytes", "131"]
    options += ["--max-source-length", "29", "--max-length", "59"]
    options += ["--example", "three red house"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["export", str(model), str(site), *options]) == 0
    return site, said.getvalue()


@pytest.fixture(scope="module")
def site(written):
    return written[0]


def files_in(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in paths}


def test_site_has_both_files_of_model(site):
    text = export.read_description(site / "translator.tflite")
    inside = export.read_description(site / "inside.tflite")
    assert (text.form, text.beam_size, text.outputs) == ("text", 2, ["alignment"])
    assert (inside.form, inside.beam_size, inside.outputs) == ("inside", 1, [])
    assert text.name == inside.name == "Translator"  # it has no name of its own
    assert text.max_bytes == inside.max_bytes == 131


def test_site_has_what_pages_load_only(site):
    files = files_in(site)
    runtime = {name for name in files if name.startswith("runtime/")}
    assert runtime == {f"runtime/core/wasm/litert.{end}" for end in ("js", "wasm")}
    pages = {name for name in files_in(PAGE) if not name.endswith((".d.ts", ".json"))}
    pages -= {"node.js", "node_worker.js"}
    pages -= {"polyfill.js", "manifest.js", "languages.js"}
    models = {"translator.tflite", "translator.md", "inside.tflite"}
    assert files - runtime - models - pages == {"inside/tour.json"}


def test_tour_is_of_first_example(site):
    shown = json.loads((site / "inside" / "tour.json").read_text(encoding="utf-8"))
    assert shown["text"] == "three red house"


def imported(path):
    """The modules that a module imports, and the files that its page names."""
    text = path.read_text(encoding="utf-8")
    for pattern in (
        r"from '(\.[^']+)'",
        r"importScripts\('(.+?)'\)",
        r'(?:href|src)="([^#].*?)"',  # not a place in the page
    ):
        for name in re.findall(pattern, text):
            yield (path.parent / name).resolve()


def test_named_files_exist(site):
    for path in [*site.rglob("*.html"), *site.glob("*.js"), *site.glob("inside/*.js")]:
        for name in imported(path):
            assert name.is_file(), f"{path.name} names {name}"


def test_service_worker_keeps_every_page(site):
    scripts = ("service-worker.js", "offline.js")
    listed = "".join((site / name).read_text(encoding="utf-8") for name in scripts)
    kept = set(
        re.findall(r"'([\w./-]+\.(?:js|json|css|html|svg|webmanifest))'", listed)
    )
    inside = {name for name in kept if (site / "inside" / name).is_file()}
    kept = {name for name in kept if (site / name).is_file()} - {"index.html"}
    kept |= {f"inside/{name}" for name in inside}
    names = {name for name in files_in(site) if not name.startswith("runtime/")}
    names = {name for name in names if not name.endswith((".tflite", ".md"))}
    assert names - kept == {"index.html", "service-worker.js"}  # "./", and itself


def test_only_site_links_inside(site):
    link = 'href="inside/index.html"'
    (shown,) = re.findall(f"<a .*{link}.*>", (site / "index.html").read_text())
    (hidden,) = re.findall(f"<a .*{link}.*>", (PAGE / "index.html").read_text())
    assert shown == hidden.replace(" hidden", "") != hidden


def test_site_is_served(site):
    with running(server := PageServer(site)):
        for name in ("index.html", "inside/index.html", "inside/worker.js"):
            with urlopen(server.url + name.removesuffix("index.html")) as response:
                assert response.read() == (site / name).read_bytes()
        assert "/translator.md" not in server.files


def test_command_names_next_steps_and_overwrites_nothing(written, installed, capsys):
    site, said = written
    assert f"keras-vanilla serve-web {site}" in said
    options = ["--form", "site", "--runtime", str(installed)]
    model = site.with_name("model.keras")
    assert main(["export", str(model), str(site), *options]) != 0
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.tflite", "--form", "site"], "A site is a folder. Received: x.tflite"),
        (["x.tflite", "--runtime", "."], "--runtime is for --form site"),
        (
            ["x", "--form", "site", "--core-operators"],
            "--core-operators is for",
        ),
        (["x", "--quantize", "int8"], "a site is a folder with --form site"),
    ],
)
def test_conflicting_options_are_refused(arguments, message, capsys):
    assert main(["export", "model.keras", *arguments]) != 0
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"runtime": "/"}, ValueError, "must hold @litertjs/core"),
        ({"beam_sise": 2}, TypeError, "beam_sise"),
        ({"model": "inside.tflite"}, ValueError, "needs a file of the form 'text'"),
        ({"model": "none.tflite"}, FileNotFoundError, "none.tflite"),
    ],
)
def test_refused_site_is_not_written(
    site, installed, small_translator, tmp_path, settings, error, message
):
    settings = {"runtime": str(installed), **settings}
    if "model" in settings:
        settings["model"] = site / settings["model"]
    with pytest.raises(error, match=message):
        write_site(small_translator, tmp_path / "site", **settings)
    with pytest.raises(TypeError, match="`translator`"):
        write_site(None, tmp_path / "site", str(installed))
    assert not list(tmp_path.iterdir())


def test_site_of_existing_file_is_same(site, installed, small_translator, tmp_path):
    limits = {"max_bytes": 131, "max_source_length": 29, "max_length": 59}
    settings = {"check": "structure", "examples": ["three red house"], **limits}
    settings |= {"model": site / "translator.tflite", "runtime": str(installed)}
    said = []
    write_site(small_translator, tmp_path / "page", say=said.append, **settings)
    assert said == [
        "Converting the model to inside.tflite.",
        "Recording the guided tour.",
    ]
    assert files_in(tmp_path / "page") == files_in(site) - {"translator.md"}
    for name in ("index.html", "translator.tflite", "inside/tour.json"):
        assert (tmp_path / "page" / name).read_bytes() == (site / name).read_bytes()


def test_site_of_pretrained_translator_has_its_own_file(monkeypatch, tmp_path):
    models = []
    monkeypatch.setattr(
        "keras_vanilla.web.site.write_site",
        lambda *arguments, **settings: models.append(settings.get("model")),
    )
    export_site = ["export", "en-fr", str(tmp_path / "site"), "--form", "site"]
    assert main(export_site) == main([*export_site, "--beam-size", "2"]) == 0
    assert models == [pretrained_file("en-fr", ".tflite"), None]


def test_site_without_translator_has_no_inside(site, installed, tmp_path):
    model = site / "translator.tflite"
    write_site(None, tmp_path / "page", str(installed), model=model)
    assert not [name for name in files_in(tmp_path / "page") if "inside" in name]
    page = (tmp_path / "page/index.html").read_text()
    assert 'href="inside/index.html" hidden>' in page
