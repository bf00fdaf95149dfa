"""The page as a folder for any host of static files."""

import json
import shutil
from collections.abc import Callable

from keras_vanilla import export
from keras_vanilla._atomic_write import atomic_path
from keras_vanilla._types import PathLike
from keras_vanilla.translation import Translator
from keras_vanilla.web.runtime import PAGE, runtime_folder
from keras_vanilla.web.server import check_model
from keras_vanilla.web.tour import tour

SEARCH_OPTIONS = ("beam_size", "length_penalty", "outputs", "shortlist", "no_loops")
HIDDEN_LINK, LINK = ' href="inside/index.html" hidden>', ' href="inside/index.html">'
NOT_IN_A_SITE = (
    "package.json",
    "package-lock.json",
    "node.js",
    "node_worker.js",
    "polyfill.js",
    "manifest.js",
    "languages.js",
)
OTHER_VARIANTS = ("threaded", "jspi")  # of LiteRT.js, which the page does not load


def write_site(
    translator: Translator,
    folder: PathLike,
    runtime: str | None = None,
    say: Callable[[str], None] = print,
    **settings,
) -> None:
    """Writes a folder that translates, and shows how, in any browser.

    It needs no server of its own: any host of static files will do. In it are

        index.html              the page that translates
        inside/index.html       the page that looks inside
        inside/tour.json        its guided tour, if the model has an example
        translator.tflite, .md  the file of the form "text", and its model card
        inside.tflite           the same model in the form "inside"
        runtime/                LiteRT.js, 19 MB, of which a browser loads 10

    Args:
        translator: Translator.
        folder: path; written whole or not at all.
        runtime: str or None. Where npm has installed LiteRT.js; None means the user's
            cache, into which it is fetched once.
        say: called with a sentence before something that takes a while.
        settings: arguments of `export.tflite`: `quantize`, `max_bytes`, `name` and so
            on. Those of the search are of translator.tflite alone.
    Raises:
        FileExistsError: if there is something at `folder`.
        TypeError, ValueError, RuntimeError: as `export.tflite`; also if LiteRT.js is
            not there and cannot be fetched, see `runtime_folder`.
    """
    litert = runtime_folder(runtime, say)
    # Otherwise `tflite` would name it after its file.
    settings = {"name": translator.about.name or "Translator", **settings}
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        export.tflite(translator, temporary / "translator.tflite", **settings)
        for name in SEARCH_OPTIONS:
            settings.pop(name, None)
        _fill(temporary, litert, translator, settings)


def write_page(
    model: PathLike,
    folder: PathLike,
    runtime: str | None = None,
    say: Callable[[str], None] = print,
    translator: Translator | None = None,
    **settings,
) -> None:
    """Writes a folder as `write_site` does, around a file that is exported already.

    Args:
        model: path of a `.tflite` file of the form "text".
        folder: path; written whole or not at all.
        runtime: str or None, as for `write_site`.
        say: called with a sentence before something that takes a while.
        translator: the Translator that the file was exported from, which the page that
            looks inside needs; None leaves out that page.
        settings: arguments of `export.tflite` for inside.tflite.
    Raises:
        FileExistsError: if there is something at `folder`.
        FileNotFoundError: if there is nothing at `model`.
        TypeError, ValueError, RuntimeError: as `write_site`; also if the file is not a
            translator's, or of another form.
    """
    check_model(model)
    litert = runtime_folder(runtime, say)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        shutil.copyfile(model, temporary / "translator.tflite")
        _fill(temporary, litert, translator, settings)


def _fill(folder, litert, translator, settings):
    """Adds the pages, what looks inside if there is a translator, and LiteRT.js."""
    if translator is not None:
        settings = {"name": translator.about.name or "Translator", **settings}
        export.tflite(translator, folder / "inside.tflite", form="inside", **settings)
    _copy_page(folder, with_inside=translator is not None)
    if translator is not None:
        _write_tour(translator, folder)
    _copy_runtime(litert, folder / "runtime")


def _write_tour(translator, folder):
    """The tour of the first example, if the file has one."""
    examples = export.read_description(folder / "inside.tflite").examples
    if examples:
        content = json.dumps(tour(translator, examples[0]), ensure_ascii=False)
        (folder / "inside" / "tour.json").write_text(content, encoding="utf-8")


def _copy_page(folder, with_inside):
    left_out = NOT_IN_A_SITE if with_inside else (*NOT_IN_A_SITE, "inside")
    ignored = shutil.ignore_patterns(*left_out, "*.d.ts")
    shutil.copytree(PAGE, folder, ignore=ignored, dirs_exist_ok=True)
    if not with_inside:
        return
    index = folder / "index.html"
    page = index.read_text(encoding="utf-8")
    index.write_text(page.replace(HIDDEN_LINK, LINK), encoding="utf-8")


def _copy_runtime(litert, folder):
    """Copies what a browser may load of npm's folder `@litertjs`."""
    for path in litert.rglob("*"):
        is_code = path.suffix in (".js", ".wasm")
        if is_code and not any(name in path.name for name in OTHER_VARIANTS):
            copy = folder / path.relative_to(litert)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
