"""Writes the page as a folder for any static file host."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from keras_vanilla import export
from keras_vanilla._atomic_write import atomic_path, refuse_unwritable
from keras_vanilla._types import PathLike
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.checks.verification import checked_sentences
from keras_vanilla.export.config import ExportConfig
from keras_vanilla.export.conversion import check_translator
from keras_vanilla.translation import Translator
from keras_vanilla.web.runtime import PAGE, runtime_folder
from keras_vanilla.web.server import check_model
from keras_vanilla.web.tour import tour

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
    *,
    sample: Sequence[str] | None = None,
    **settings: Any,
) -> None:
    """Writes a site that translates in any browser, and shows how the model works.

    Any static file host can serve it. The folder contains

        index.html              the page that translates
        inside/index.html       the page that shows the inside of the model
        inside/tour.json        its guided tour, if the model has an example
        translator.tflite, .md  the file of the form "text", and its model card
        inside.tflite           the same model in the form "inside"
        runtime/                LiteRT.js, 19 MB, of which a browser loads 10

    Args:
        translator: Translator.
        folder: path; the folder is written atomically.
        runtime: str or None. Folder of an existing installation of LiteRT.js; None
            means the user's cache, to which it is downloaded once.
        say: function that is called with a sentence before a step that takes a while.
        sample: list of str or None, as in `export.tflite`.
        settings: arguments of `ExportConfig.of`, such as `quantize`, `max_bytes` and
            `name`. Those of the search apply only to translator.tflite.
    Raises:
        FileExistsError: if `folder` exists.
        TypeError, ValueError, RuntimeError: as in `export.tflite`, or if LiteRT.js is
            missing and cannot be downloaded, see `runtime_folder`.
    """
    config = _config(translator, settings)
    if sample is not None:
        sample = checked_sentences("sample", sample)
    refuse_unwritable(folder)
    litert = runtime_folder(runtime, say)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        file = temporary / "translator.tflite"
        export.tflite(translator, file, config, sample=sample, say=say)
        _fill(temporary, litert, translator, say, config, sample)


def write_page(
    model: PathLike,
    folder: PathLike,
    runtime: str | None = None,
    say: Callable[[str], None] = print,
    translator: Translator | None = None,
    *,
    sample: Sequence[str] | None = None,
    **settings: Any,
) -> None:
    """Writes a site like `write_site`, with an existing `.tflite` file.

    Args:
        model: path of a `.tflite` file of the form "text".
        folder: path; the folder is written atomically.
        runtime: str or None, as in `write_site`.
        say: function that is called with a sentence before a step that takes a while.
        translator: Translator from which the file was exported, for the page that shows
            the inside of the model; None omits this page.
        sample: list of str or None, as in `write_site`.
        settings: arguments of `ExportConfig.of` for inside.tflite.
    Raises:
        FileExistsError: if `folder` exists.
        FileNotFoundError: if `model` does not exist.
        TypeError, ValueError, RuntimeError: as in `write_site`, or if the file is not a
            translator's, or has another form, or there are settings or a sample without
            a translator.
    """
    check_model(model)
    if translator is None and (settings or sample is not None):
        names = ", ".join([*settings, *(["sample"] if sample is not None else [])])
        raise ValueError(
            "Without `translator` no file is exported that could take settings or a "
            f"sample. Received: {names}"
        )
    config = translator and _config(translator, settings)
    if sample is not None:
        sample = checked_sentences("sample", sample)
    refuse_unwritable(folder)
    litert = runtime_folder(runtime, say)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()
        shutil.copyfile(model, temporary / "translator.tflite")
        _fill(temporary, litert, translator, say, config, sample)


def _config(translator, settings):
    """Returns the settings of translator.tflite, named after the translator."""
    check_translator(translator)
    config = ExportConfig.of(**settings)
    if config.about.name is None:  # it would be that of the file
        config = ExportConfig.of(config, name=translator.about.name or "Translator")
    if config.form != "text":
        raise ValueError(
            "A site has one file of the form 'text' and one of the form 'inside'. "
            f"Received: form={config.form!r}"
        )
    return config


def _fill(folder, litert, translator, say, config, sample):
    """Adds the pages, inside.tflite if there is a translator, and LiteRT.js."""
    if translator is not None:
        inside = dataclasses.replace(
            config, form="inside", decoding=DecodingConfig(), outputs=()
        )
        file = folder / "inside.tflite"
        export.tflite(translator, file, inside, sample=sample, say=say)
    _copy_page(folder, with_inside=translator is not None)
    if translator is not None:
        _write_tour(translator, folder, say)
    _copy_runtime(litert, folder / "runtime")


def _write_tour(translator, folder, say):
    """Writes the tour of the first example, if the file has one."""
    examples = export.read_description(folder / "inside.tflite").examples
    if examples:
        say("Recording the guided tour.")
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
    """Copies the files in npm's folder `@litertjs` that a browser may load."""
    for path in litert.rglob("*"):
        is_code = path.suffix in (".js", ".wasm")
        if is_code and not any(name in path.name for name in OTHER_VARIANTS):
            copy = folder / path.relative_to(litert)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
