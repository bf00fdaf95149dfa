"""A translator as one `.tflite` file: bytes of text in, bytes of text out."""

import contextlib
import dataclasses
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_vanilla._about import About
from keras_vanilla._atomic_write import atomic_path, atomic_write_text
from keras_vanilla._checks import check_choice, refuse_unknown
from keras_vanilla._types import PathLike
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.checks.structure import structure_faults
from keras_vanilla.export.checks.verification import compare, shortlist_bytes
from keras_vanilla.export.conversion import convert, require_tensorflow
from keras_vanilla.export.inside_signatures import InsideForm
from keras_vanilla.export.limits import Limits
from keras_vanilla.export.metadata.description import (
    STEPPED,
    TAKING_TEXTS,
    Description,
    with_description,
)
from keras_vanilla.export.metadata.model_card import model_card_text
from keras_vanilla.export.older_runtimes import oldest_runtime
from keras_vanilla.export.signatures import IdsForm, StepsForm, TextForm
from keras_vanilla.export.target_language import in_target_language
from keras_vanilla.export.to_saved_model import check_target
from keras_vanilla.translation import Shortlist, Translator
from keras_vanilla.translation.ensembles import check_one_model

CHECKS = ("all", "structure")
FORMS = {"text": TextForm, "ids": IdsForm, "steps": StepsForm, "inside": InsideForm}
QUANTIZATIONS = ("int8", "int4", None)
OUTPUTS = ("alignment", "confidence")
ABOUT = tuple(field.name for field in dataclasses.fields(About))


def tflite(
    translator: Translator,
    path: PathLike,
    quantize: str | None = "int8",
    beam_size: int = 1,
    max_bytes: int = 512,
    max_length: int | None = None,
    form: str = "text",
    check: str = "all",
    sample: Sequence[str] | None = None,
    max_source_length: int | None = None,
    length_penalty: float = 0.6,
    outputs: Sequence[str] = (),
    shortlist: Shortlist | None = None,
    no_loops: bool = False,
    **about: str | Sequence[str],
) -> None:
    """Writes one `.tflite` file with the whole translation inside.

    Static shapes, which every runtime takes, and builtin operators only. Each form has
    one signature or two:

        text     translate       text uint8 (max_bytes,) -> text uint8 (M,),
                                 ids int32 (L,), score float32 ()
        ids      translate_ids   source_ids int32 (1, S) -> ids int32 (1, L)
        steps    encode          source_ids int32 (1, S) -> the cache
                 decode_step     ids int32 (1,), index int32 (), the cache ->
                                 logits float32 (1, V), the part of the cache that
                                 changed

    with S = max_source_length and L = min(S + 50, max_length); see `signatures`. "int8"
    stores the matrices in one byte per number, and quantises their inputs when the file
    runs. The file describes itself, see `read_description`, and ends with a checksum.
    The text form has a model card beside it: `x.tflite` and `x.md`.

    All arguments are checked before anything is converted. The file is checked before
    it has its name: its structure, and its translations against Keras's.

    Args:
        translator: Translator.
        path: path that ends with ".tflite"; written whole or not at all, with the
            folders above it that are missing.
        quantize: "int8", "int4", or None for float32.
        beam_size: int. 1 is greedy search.
        max_bytes: int. Longest text, in bytes.
        max_length: int or None. Longest output in tokens, the end included; None means
            128, or the model's `max_length` where that is less.
        form: "text", "ids", "steps" or "inside".
        check: "all", or "structure", which leaves the translations out, for a model
            that is not trained.
        sample: list of str or None. Sentences to check the file on, in the source
            language; None makes some up of frequent words.
        max_source_length: int or None. Longest source, as `max_length`.
        length_penalty: float. Of beam search.
        outputs: "alignment", "confidence" or both: what the text form says of each
            token besides, see `TextForm`.
        shortlist: Shortlist or None. Compute each step for its candidates alone, which
            is quicker where the vocabulary is large; some translations differ from
            those of the whole vocabulary. For the forms "text" and "ids".
        no_loops: bool. No phrase is repeated more than three times in a row, unless the
            text repeats it: a translation without loops stays what it is. Not for the
            forms without a search.
        about: fields of `About`, instead of those that the translator keeps; without
            any name, the file has that of its path. Examples that the translator keeps
            and the file does not take are left out. Where texts can
            begin with the codes of languages (`MarianTokenizer.languages`), the file
            translates every text into `target_language`, such as "fra"; without it, a
            text begins with the code, as in Python.
    Raises:
        FileExistsError: if `path`, or the model card's, exists.
        TypeError: if an argument is unknown, or `sample` is one str.
        ValueError: if an argument is out of its range, `path` does not end with
            ".tflite", a sentence of `sample` is longer than the file takes, a
            tokenizer is not a unigram model, the translator is an ensemble, or the
            vocabulary has codes of languages, but not of `target_language`.
        RuntimeError: if the file does not pass the check, the graph needs other than
            builtin operators, or Keras does not run on TensorFlow.
    """
    refuse_unknown("tflite", about, ABOUT)
    check_one_model(translator, "A .tflite file")
    path = Path(path)
    limits = Limits.of_model(translator.model, max_bytes, max_source_length, max_length)
    decoding = DecodingConfig(
        beam_size=beam_size, length_penalty=length_penalty, no_loops=no_loops
    )
    given = About(**about)
    stated = {"name": path.stem} | translator.about.updated(given).stated()
    stated["examples"] = _examples(translator, given.examples, limits, form)
    description = Description(
        **stated,
        form=form,
        max_bytes=limits.max_bytes if form in TAKING_TEXTS else None,
        max_source_tokens=limits.max_source_length,
        max_output_tokens=limits.output_length,
        beam_size=decoding.beam_size,
        length_penalty=None if decoding.is_greedy else decoding.length_penalty,
        quantize=quantize,
        parameters=translator.model.count_params(),
        end_id=translator.model.end_id,
        outputs=checked_outputs(outputs, form),
        shortlist=shortlist_size(shortlist, form),
        no_loops=decoding.no_loops,
    )
    plan = TfliteExport(
        translator=in_target_language(
            translator.in_float32(), description.target_language
        ),
        path=path,
        form=form,
        quantize=quantize,
        check=check,
        sample=sample,
        limits=limits,
        decoding=decoding,
        shortlist=shortlist,
        description=description,
    )
    plan.write()


def _examples(translator, given, limits, form):
    """The examples in a file: those given, or the translator's own that it takes."""
    examples = list((translator.about.examples if given is None else given) or ())
    if form not in TAKING_TEXTS:
        limits = dataclasses.replace(limits, max_bytes=math.inf)
    sources = translator.tokenizer.encode(examples)
    if given is not None:
        limits.refuse_longer(examples, sources)
    pairs = zip(examples, sources, strict=True)
    return [example for example, source in pairs if limits.take(example, source)]


def checked_outputs(outputs: Sequence[str], form: str) -> list[str]:
    """The `outputs` of `tflite`, in the order of `OUTPUTS`.

    Raises:
        TypeError: if they are one str.
        ValueError: if one is unknown, or the form does not give texts.
    """
    if isinstance(outputs, str):
        raise TypeError(f"`outputs` must be a list of str. Received: {outputs!r}")
    for name in outputs:
        check_choice("outputs", name, OUTPUTS)
    if outputs and form != "text":
        raise ValueError(
            "`outputs` are for files of the form 'text'. Received: "
            f"outputs={list(outputs)} and form={form!r}"
        )
    return [name for name in OUTPUTS if name in outputs]


def shortlist_size(shortlist: Shortlist | None, form: str) -> int | None:
    """The number of candidates of the `shortlist` of `tflite`; None without one.

    Raises:
        TypeError: if it is not a Shortlist.
        ValueError: if the form is not for one.
    """
    if shortlist is None:
        return None
    if not isinstance(shortlist, Shortlist):
        raise TypeError(f"`shortlist` must be a Shortlist. Received: {shortlist!r}")
    if form in STEPPED:
        raise ValueError(
            "A `shortlist` is for files of the forms 'text' and 'ids'. Received: "
            f"form={form!r}"
        )
    return shortlist.size


@dataclass(frozen=True, kw_only=True)
class TfliteExport:
    """One export: what goes into the file, and how; checked when it is made.

    Args:
        translator: Translator that computes in float32.
        path, form, quantize, check, sample: as of `tflite`.
        limits: Limits.
        decoding: DecodingConfig.
        shortlist: as of `tflite`.
        description: Description.
    Raises:
        FileExistsError, TypeError, ValueError, RuntimeError: as `tflite`.
    """

    translator: Translator
    path: Path
    form: str
    quantize: str | None
    check: str
    sample: Sequence[str] | None
    limits: Limits
    decoding: DecodingConfig
    shortlist: Shortlist | None
    description: Description

    def __post_init__(self):
        check_choice("quantize", self.quantize, QUANTIZATIONS)
        check_choice("form", self.form, tuple(FORMS))
        check_choice("check", self.check, CHECKS)
        require_tensorflow()
        if self.path.suffix != ".tflite":
            raise ValueError(
                f"A TFLite file's name ends with .tflite. Received: {self.path}"
            )
        if self.form in STEPPED and self.decoding != DecodingConfig():
            raise ValueError(
                f"A file of the form {self.form!r} leaves the search to the app and "
                "takes no `beam_size` or `no_loops`. Received: "
                f"{self.decoding.beam_size} and {self.decoding.no_loops}"
            )
        check_target(self.path)
        if self.has_texts:
            check_target(self.card)
        if self.sample is not None:
            limits = self.limits
            if self.form not in TAKING_TEXTS:
                limits = dataclasses.replace(limits, max_bytes=math.inf)
            limits.refuse_longer(self.sample, self.translator.encode(self.sample))

    @property
    def has_texts(self) -> bool:
        """Whether the file takes and gives texts, not ids."""
        return self.form == "text"

    @property
    def card(self) -> Path:
        """The model card's path."""
        return self.path.with_suffix(".md")

    def write(self) -> None:
        """Writes the file, and the model card of the text form.

        Raises:
            RuntimeError, ValueError: as `tflite`.
        """
        settings = {} if self.form in STEPPED else {"shortlist": self.shortlist}
        if self.has_texts:
            settings["outputs"] = tuple(self.description.outputs)
        # `convert` puts a phone's operators into the layers: of a copy, for any thread
        # may translate meanwhile.
        copy = self.translator.copy()
        graph = FORMS[self.form](copy, self.limits, self.decoding, **settings)
        content = convert(graph, copy.model, self.quantize)
        description = dataclasses.replace(
            self.description, oldest_runtime=oldest_runtime(content)
        )
        content = with_description(content, description, graph.metadata)
        tables = graph.tokenizer.nbytes if graph.tokenizer else 0
        tables += shortlist_bytes(self.translator.model, description)
        _refuse(structure_faults(content, self.translator.model, tables))
        with contextlib.ExitStack() as undo:
            with atomic_path(self.path, overwrite=False, parents=True) as temporary:
                with open(temporary, "xb") as file:
                    file.write(content)
                if self.check == "all":
                    report = compare(
                        self.translator,
                        temporary,
                        self.sample,
                        shortlist=self.shortlist,
                    )
                    _refuse(report.reasons, self.sample is None)
                if self.has_texts:
                    digest = hashlib.sha256(content).hexdigest()
                    text = model_card_text(
                        description, self.path.name, len(content), digest
                    )
                    atomic_write_text(self.card, text, overwrite=False)
                    undo.callback(self.card.unlink)  # a retry needs the name
            undo.pop_all()


def _refuse(reasons, on_made_sentences=False):
    if not reasons:
        return
    remedy = ""
    if on_made_sentences:
        remedy = (
            " The sentences were frequent pieces in random order; for a model that "
            "knows others, give some of its own as `sample` (--sample FILE)."
        )
    raise RuntimeError(f"The file is not written: {' '.join(reasons)}{remedy}")
