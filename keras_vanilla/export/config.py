"""Settings of a `.tflite` file."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_vanilla._about import About
from keras_vanilla._checks import check_choice, check_integer, refuse_unknown
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.metadata.description import FORMS

OUTPUTS = ("alignment", "confidence")
DECODING_OPTIONS = ("beam_size", "length_penalty", "no_loops")  # available in files
ABOUT_OPTIONS = tuple(field.name for field in dataclasses.fields(About))
NOT_IN_FORM = {
    "text": (),
    "steps": ("max_bytes", "decoding", "outputs"),  # of ids; the app searches
    "inside": ("decoding", "outputs"),
}
LONGEST_TEXT = 2**20  # bytes; the tokenizer's tensors are about a hundred times as long


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """The settings of a `.tflite` file.

    `tflite` takes a config, or the fields of the config, of its `decoding` and of its
    `about` as keywords: `tflite(translator, path, quantize="int4", beam_size=4)`.

    Args:
        form: "text", "steps" or "inside". The inputs and outputs, see `tflite`.
        quantize: "int8", "int4", or None for float32.
        max_bytes: int or None. Longest text, in bytes; for forms that take text. None
            means 512.
        max_source_length: int or None. Longest source in tokens, including the end.
            None means 128, or the model's `max_length` if that is less.
        max_length: int or None. Longest output, with the same default.
        decoding: DecodingConfig. Files use `beam_size`, `length_penalty` and
            `no_loops`. The forms "steps" and "inside" leave the search to the app.
        outputs: "alignment", "confidence" or both. Additional outputs of the form
            "text" for each token, see `TextForm`.
        check: "all", or "structure" to skip the check of translations, for a model that
            is not trained.
        about: About. Its values replace those of the translator. The default name is
            that of the path. Examples of the translator that are too long for the file
            are left out. If texts can begin with language codes
            (`MarianTokenizer.languages`), the file translates every text into
            `target_language`, such as "fra"; without it, a text begins with the code,
            as in Python.
    Raises:
        TypeError: if `outputs` is one str, or an argument has the wrong type.
        ValueError: if an argument is out of its range, or not available in the form.
    Example:
        ExportConfig(quantize="int4", decoding=DecodingConfig(beam_size=4))
    """

    form: str = "text"
    quantize: str | None = "int8"
    max_bytes: int | None = None
    max_source_length: int | None = None
    max_length: int | None = None
    decoding: DecodingConfig = DecodingConfig()
    outputs: Sequence[str] = ()
    check: str = "all"
    about: About = About()

    @classmethod
    def of(
        cls, config: "ExportConfig | None" = None, **settings: Any
    ) -> "ExportConfig":
        """Returns a config with some fields replaced.

        Args:
            config: ExportConfig, or None for the default.
            settings: fields of the config, of its `decoding` and of its `about`.
        Raises:
            TypeError: if `config` has the wrong type, or a setting is not a field.
            ValueError: as in the constructor.
        """
        if not isinstance(config, cls | None):
            raise TypeError(
                "`config` must be an ExportConfig; its fields are given by name, such "
                f"as quantize='int4'. Received: {config!r:.60}"
            )
        refuse_unknown("tflite", settings, EXPORT_OPTIONS)
        config = config or cls()
        decoding = {n: settings.pop(n) for n in DECODING_OPTIONS if n in settings}
        about = {n: settings.pop(n) for n in ABOUT_OPTIONS if n in settings}
        if decoding:
            config = dataclasses.replace(
                config, decoding=DecodingConfig.of(config.decoding, **decoding)
            )
        if about:
            config = dataclasses.replace(
                config, about=config.about.updated(About(**about))
            )
        return dataclasses.replace(config, **settings)

    def __post_init__(self):
        def keep(name, value):  # converts NumPy's numbers to Python's
            object.__setattr__(self, name, value)

        check_choice("form", self.form, tuple(FORMS))
        check_choice("quantize", self.quantize, ("int8", "int4", None))
        check_choice("check", self.check, ("all", "structure"))
        for name, kind in (("decoding", DecodingConfig), ("about", About)):
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(
                    f"`{name}` must be of the type {kind.__name__}. Received: {value!r}"
                )
        in_a_file = {name: getattr(self.decoding, name) for name in DECODING_OPTIONS}
        has_guard = not isinstance(self.decoding.no_loops, bool)
        if has_guard or self.decoding != DecodingConfig(**in_a_file):
            raise ValueError(
                "`decoding` of a file may have beam_size, length_penalty, and no_loops "
                "that is True or False; the longest output is the file's `max_length`. "
                f"Received: {self.decoding}"
            )
        if isinstance(self.outputs, str):
            raise TypeError(
                f"`outputs` must be a list of str. Received: {self.outputs!r}"
            )
        for name in self.outputs:
            check_choice("outputs", name, OUTPUTS)
        keep("outputs", tuple(name for name in OUTPUTS if name in self.outputs))
        for name in ("max_bytes", "max_source_length", "max_length"):
            if (value := getattr(self, name)) is not None:
                most = LONGEST_TEXT if name == "max_bytes" else None
                keep(name, check_integer(name, value, 1, most))
        for name in NOT_IN_FORM[self.form]:
            if (value := getattr(self, name)) != getattr(ExportConfig, name):
                raise ValueError(
                    f"`{name}` is not available in a file of the form {self.form!r}. "
                    f"Received: {value!r}"
                )


EXPORT_OPTIONS = (
    *(field.name for field in dataclasses.fields(ExportConfig)),
    *DECODING_OPTIONS,
    *ABOUT_OPTIONS,
)
