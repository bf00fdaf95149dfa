"""Models of other formats, and of the hub, that cannot be read or written."""

from functools import partial

from refusal import Refusal

from keras_vanilla import pipeline
from keras_vanilla._hub_reference import HubReference
from keras_vanilla.interop import read_translator, write_translator
from keras_vanilla.translation import Translator

COMPLETE = (
    "_hub_reference.py",
    "interop/formats.py",
    "interop/translation_pipeline.py",
)


def marian_npz(name):
    def call(tmp_path):
        (tmp_path / name).touch()
        return read_translator(tmp_path / name if "npz" in name else tmp_path)

    return call


def unknown_format(tmp_path):
    (tmp_path / "notes.txt").touch()
    return read_translator(tmp_path / "notes.txt")


def missing(model):
    return partial(Translator.load, model)


def piped(*args, **settings):
    return lambda: pipeline(*args, **settings)


def translated(texts="One.", **settings):
    return lambda: pipeline("translation_en_to_fr")(texts, **settings)


ROWS = [
    *(
        Refusal(f"pipeline: {task}", piped(task), f"`task`.*{task!r}, model=N")
        for task in ("summarization", "translation", "translation_en_to_de")
    ),
    *(
        Refusal(f"pipeline: {name}", call, pattern, error)
        for name, call, pattern, error in [
            ("device", piped(device=0, model="en-fr"), "'device'", TypeError),
            ("return_tensors", translated(return_tensors=True), "'return_t", TypeError),
            ("text", translated(3), "list of str.*: 3", TypeError),
            ("return_text", translated(return_text=False), "_text.*False", ValueError),
            ("batch_size", translated(batch_size=0), "batch_size.*: 0", ValueError),
            ("max_length", translated(max_length=1), "max_length.*: 1", ValueError),
            ("num_beams", translated(num_beams="4"), "num_beams.*'4'", ValueError),
            ("model", piped(model="none"), "folder none", FileNotFoundError),
        ]
    ),
    Refusal("reference without owner", lambda: HubReference.parse("a"), "OWNER.*: a"),
    Refusal("Marian's npz", marian_npz("m.npz"), r"m\.npz.*removed in 0\.8\.0"),
    Refusal("Marian's folder", marian_npz("decoder.yml"), r"vanilla 0\.7\.0 reads it"),
    Refusal("unknown format", unknown_format, r"notes\.txt has none"),
    Refusal(
        "format to write",
        lambda: write_translator(None, "a", "marian-npz"),
        "`format` .*'marian-npz'",
    ),
    Refusal("no format", lambda: write_translator(None, "folder"), "folder does not"),
    *(
        Refusal(f"missing {path}", missing(path), pattern, FileNotFoundError)
        for path, pattern in {
            "runs/translator.keras": r"folder runs/translator.keras\.$",
            "owner/tiny": "folder owner/tiny; .*'en-fr'.*hub:OWNER/NAME",
        }.items()
    ),
    Refusal(
        "no such path",
        lambda tmp_path: read_translator(tmp_path / "none"),
        "none",
        FileNotFoundError,
    ),
]
