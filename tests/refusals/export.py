"""What an export, a verification and a description refuse."""

from functools import cache

import described_file
import echo_file
import keras
import pytest
import word_reversal
from refusal import Refusal

from keras_vanilla import Translator, export
from keras_vanilla.decoding import DecodingConfig, LoopGuard
from keras_vanilla.export import ExportConfig, read_description
from keras_vanilla.export.checks.verification import sources_for
from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import (
    packed,
    unpacked,
)
from keras_vanilla.web.site import write_site

COMPLETE = ("export/config.py", "export/metadata/description.py")
LONG = "one " * 200


@cache
def translator():
    return Translator.load(word_reversal.TRAINED)


def config(**settings):
    return lambda: ExportConfig.of(**settings)


def description(**facts):
    return lambda: Description(**{**described_file.FACTS, **facts})


def file(name="x.tflite", **settings):
    """A call of `tflite` that must end before the conversion."""
    return lambda folder: export.tflite(translator(), folder / name, **settings)


def saved_model(name="x", **settings):
    return lambda folder: export.saved_model(translator(), folder / name, **settings)


def verify(*arguments):
    return lambda folder: export.verify(translator(), folder / "x", *arguments)


def site(**settings):
    return lambda folder: write_site(translator(), folder / "x", **settings)


def reading(content):
    """A call that reads the description of a file with this content."""

    def call(folder):
        (folder / "x.tflite").write_bytes(content())
        read_description(folder / "x.tflite")

    return call


def entry(content):
    return lambda: packed(unpacked(echo_file.content()), {"keras_vanilla": content})


def on_another_backend(call):
    def changed(folder):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keras.backend, "backend", lambda: "torch")
            call(folder)

    return changed


def taken(call):
    """The call, where its output and the card of this are already."""

    def changed(folder):
        (folder / "x").mkdir()
        (folder / "x.md").write_text("mine")
        call(folder)

    return changed


def below_a_file(call):
    """The call, where a parent of its output is a file."""

    def changed(folder):
        (folder / "x").write_text("mine")
        call(folder)

    return changed


ROWS = [
    # settings of a file
    Refusal("config of another type", config(config="int4"), "'int4'", TypeError),
    Refusal("unknown setting", config(beam_sise=2), "beam_sise.*beam_size", TypeError),
    Refusal("decoding is a number", config(decoding=4), "`decoding`.*4", TypeError),
    Refusal("about is a name", config(about="A"), "`about`.*'A'", TypeError),
    Refusal("unknown form", config(form="ids"), "`form`.*'steps'.*'ids'"),
    Refusal("unknown precision", config(quantize="int5"), "`quantize`.*'int5'"),
    Refusal("unknown check", config(check="some"), "`check`.*'some'"),
    Refusal("no bytes", config(max_bytes=0), "`max_bytes`.*0"),
    Refusal("too many bytes", config(max_bytes=2**31), "`max_bytes`.*2147483648"),
    Refusal("bytes of ids", config(form="steps", max_bytes=9), "max_bytes.*'steps'.*9"),
    Refusal("no tokens", config(max_source_length=0), "`max_source_length`.*0"),
    Refusal("no output", config(max_length=0), "`max_length`.*0"),
    Refusal("half a token", config(max_length=2.5), "`max_length`.*2.5"),
    Refusal(
        "longest output of the search",
        config(decoding=DecodingConfig(max_length=9)),
        "`decoding`.*`max_length`",
    ),
    Refusal(
        "own guard of loops",
        config(decoding=DecodingConfig(no_loops=LoopGuard())),
        "`decoding`.*no_loops=LoopGuard",
    ),
    Refusal("n-best", config(decoding=DecodingConfig(n_best=1)), "`decoding`.*n_best"),
    Refusal("beams of steps", config(form="steps", beam_size=4), "'steps'.*4"),
    Refusal("loops of steps", config(form="inside", no_loops=True), "'inside'.*True"),
    Refusal("one output", config(outputs="alignment"), "`outputs`", TypeError),
    Refusal("unknown output", config(outputs=["scores"]), "`outputs`.*'scores'"),
    Refusal(
        "outputs of steps",
        config(form="steps", outputs=["confidence"]),
        "`outputs`.*'steps'.*confidence",
    ),
    # `tflite`, before it converts
    Refusal("slip", file(model_licence="MIT"), "model_licence.*mean", TypeError),
    Refusal("prefix", file(target_prefix=["een"]), "target_prefix", TypeError),
    Refusal("another ending", file(name="x.keras"), "x.keras"),
    Refusal("source above model's", file(max_source_length=61), "60.*61"),
    Refusal("output above model's", file(max_length=61), "`max_length`.*60.*61"),
    Refusal("long example", file(examples=["a", LONG]), "Sentence 2.*800 bytes.*512"),
    Refusal("long sample", file(sample=["a", LONG]), "Sentence 2.*800 bytes.*512"),
    Refusal(
        "tokens of sample",
        file(sample=["one two three four five"], max_source_length=3),
        "Sentence 1.*6 tokens.*3",
    ),
    Refusal("empty sample", file(sample=[]), r"`sample`.*\[\]"),
    Refusal("sample is one str", file(sample="one"), "`sample`.*'one'", TypeError),
    Refusal("numbers as sample", file(sample=[1]), "`sample`.*int", TypeError),
    Refusal("file exists", taken(file()), "x.md", FileExistsError),
    Refusal("folder is a file", below_a_file(file(name="x/y.tflite")), "x", OSError),
    Refusal("file on PyTorch", on_another_backend(file()), "'torch'", RuntimeError),
    Refusal(
        "path instead of translator",
        lambda folder: export.tflite("a.keras", folder / "x.tflite"),
        "`translator`.*'a.keras'",
        TypeError,
    ),
    # `saved_model`
    Refusal("file as parent", below_a_file(saved_model(name="x/y")), "x", OSError),
    Refusal("folder exists", taken(saved_model()), "x", FileExistsError),
    Refusal("on torch", on_another_backend(saved_model()), "'torch'", RuntimeError),
    Refusal("operators by name", saved_model(core_operators="all"), "core_.*'all'"),
    Refusal(
        "folder of a path",
        lambda folder: export.saved_model("a.keras", folder / "x"),
        "`translator`.*'a.keras'",
        TypeError,
    ),
    # `write_site`, before it exports or fetches anything
    Refusal("unknown setting of a site", site(beam_sise=2), "beam_sise", TypeError),
    Refusal("site exists", taken(site()), "x", FileExistsError),
    # `verify`
    Refusal("no sentences", verify([]), r"`sentences`.*\[\]"),
    Refusal("sentences are one str", verify("one"), "`sentences`.*'one'", TypeError),
    Refusal("references are one str", verify(["a"], "b"), "`references`", TypeError),
    Refusal("fewer references", verify(["a", "b"], ["c"]), "1 references.*2 sentences"),
    Refusal("nothing there", verify(["a"]), "x", FileNotFoundError),
    Refusal(
        "folder of something else",
        lambda folder: export.verify(translator(), folder, ["a"]),
        "is not a SavedModel",
    ),
    Refusal(
        "sentence too long for the file",
        lambda: sources_for(translator(), description(max_source_tokens=3)(), [LONG]),
        "Sentence 1.*800 bytes.*131",
    ),
    # descriptions
    Refusal("half a byte", description(max_bytes=1.5), "`max_bytes`.*1.5", TypeError),
    Refusal("text of any length", description(max_bytes=None), "max_bytes", TypeError),
    Refusal("no name", description(name=None), "`name`.*None", TypeError),
    Refusal("bytes as text", description(data=b"x"), "`data`.*b'x'", TypeError),
    Refusal("half a character", description(data="\udc80"), r"`data`.*\\udc80"),
    Refusal("unknown form of a file", description(form="ids"), "`form`.*'ids'"),
    Refusal(
        "number as output", description(outputs=[1]), r"`outputs`.*\[1\]", TypeError
    ),
    Refusal("empty example", description(examples=["a", ""]), "`examples`.*''"),
    Refusal("number as example", description(examples=[3]), "`examples`", TypeError),
    *(
        Refusal(f"tag {tag!r}", description(source_language=tag), f"BCP-47.*{tag!r}")
        for tag in ("german", "de_DE", "", "d", "de-", "de en")
    ),
    Refusal("not JSON", reading(entry(b"\xff")), "x.tflite is damaged"),
    Refusal(
        "form of 0.7.0",
        reading(entry(b'{"format": "keras_vanilla translator 4", "form": "ids"}')),
        "x.tflite.*'ids'.*0.7.0",
    ),
    Refusal(
        "newer format",
        reading(entry(b'{"format": "keras_vanilla translator 5"}')),
        "x.tflite.*'keras_vanilla translator 5'",
    ),
    Refusal("no description", reading(echo_file.content), "x.tflite has no descr"),
    *(
        Refusal(
            f"file of {content!r:.20}", reading(lambda c=content: c), "x.tflite is not"
        )
        for content in (b"", b"TFL3", b"Ein Hund rennt.", b"PK\3\4" * 99)
    ),
    Refusal("no file", lambda folder: read_description(folder / "a"), "a", OSError),
    Refusal("folder", lambda folder: read_description(folder), "directory", OSError),
]
