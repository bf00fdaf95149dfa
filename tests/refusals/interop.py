"""Models of other formats, and of the hub, that cannot be read or written."""

from functools import partial

from refusal import Refusal

from keras_vanilla._hub_reference import HubReference
from keras_vanilla.interop import read_translator, write_translator
from keras_vanilla.translation import Translator

COMPLETE = ("_hub_reference.py", "interop/formats.py")


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


ROWS = [
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
