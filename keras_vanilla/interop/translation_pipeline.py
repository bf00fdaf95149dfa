"""The translation pipeline of transformers 4, which version 5 no longer has."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_vanilla._checks import check_choice, check_integer, refuse_unknown
from keras_vanilla._hub_reference import FORM, PREFIX, HubReference
from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.json_file import read_json_object
from keras_vanilla.interop.formats import read_translator
from keras_vanilla.interop.hub import fetch
from keras_vanilla.pretrained import NAMES, pretrained_file

SEARCH = {"num_beams": 4, "max_length": 257, "length_penalty": 1.0}
SEARCH |= {"early_stopping": False, "no_repeat_ngram_size": None}
SETTINGS = *SEARCH, "batch_size", "return_text"


def pipeline(
    task: str = "translation", model: PathLike | None = None, **settings: Any
) -> Callable[..., list[dict[str, str]]]:
    """Returns a function that translates like the pipelines of transformers 4.

    It takes a str or a list of str, and returns a list of {"translation_text": str}.

    Args:
        task: "translation_en_to_fr", whose translator is in this package, or with a
            `model` "translation" or any other "translation_xx_to_yy".
        model: str or path. A Marian model of the Hugging Face hub, such as
            "Helsinki-NLP/opus-mt-en-de", or a path for `read_translator`.
        settings: `num_beams`, `max_length` (with the start), `length_penalty`,
            `early_stopping`, `no_repeat_ngram_size`, by default those of the model's
            files; `batch_size` (without effect), `return_text`. Each call takes them.
    Raises:
        TypeError: if an argument is unknown, or texts are not str.
        ValueError: if a value is out of range, or the task is another one.
        OSError: if the model does not exist, or cannot be fetched.
    Example:
        pipeline("translation_en_to_fr")("How old are you?")
    """
    refuse_unknown("A translation pipeline", settings, SETTINGS)
    match = re.fullmatch("translation(?:_([a-z]+)_to_([a-z]+))?", str(task))
    languages = "-".join(filter(None, match.groups())) if match else None
    if match is None or (model is None and languages not in NAMES):
        raise ValueError(
            "`task` must be 'translation_en_to_fr', or 'translation' with a `model` "
            f"such as 'Helsinki-NLP/opus-mt-en-de'. Received: {task!r}, model={model!r}"
        )
    path = Path(pretrained_file(languages) if model is None else model)
    if not path.exists() and FORM.fullmatch(str(model).removeprefix(PREFIX)):
        path = fetch(HubReference.parse(model))[1]
    stated = {}
    for file in (path / "config.json", path / "generation_config.json"):
        stated |= read_json_object(file) if file.exists() else {}
    stated = {name: value for name, value in stated.items() if value is not None}
    start_and_end = 1 + ("forced_eos_token_id" in stated)
    defaults = SEARCH | {name: stated[name] for name in SEARCH if name in stated}
    translator = read_translator(path)

    def translate(texts: str | Sequence[str], **more: Any) -> list[dict[str, str]]:
        refuse_unknown("A translation pipeline", more, SETTINGS)
        given = {"return_text": True, "batch_size": 1} | defaults | settings | more
        check_choice("return_text", given["return_text"], (True,))
        check_integer("batch_size", given["batch_size"], 1)
        limit = check_integer("max_length", given["max_length"], 1 + start_and_end)
        beams = check_integer("num_beams", given["num_beams"], 1)
        translations = translator.translate(
            [texts] if isinstance(texts, str) else texts,
            beam_size=beams,
            max_length=min(limit - start_and_end, translator.model.max_length),
            length_normalization="power",
            length_penalty=given["length_penalty"],
            early_stopping=None if beams == 1 else given["early_stopping"],
            no_repeat_ngram_size=given["no_repeat_ngram_size"] or None,
        )
        return [{"translation_text": translation} for translation in translations]

    return translate
