"""Loads Marian models, such as OPUS-MT, from the Hugging Face hub by name."""

import contextlib
import fnmatch
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from keras_vanilla._about import About
from keras_vanilla._checks import extra_missing, first_line
from keras_vanilla._hub_reference import HubReference
from keras_vanilla._version import __version__
from keras_vanilla.interop.marian import from_marian
from keras_vanilla.translation import Translator

CONFIG, CARD = "config.json", "README.md"
REQUIRED = CONFIG, "source.spm", "target.spm", "vocab.json"
OPTIONAL = (
    CARD,
    "generation_config.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "target_vocab.json",
)
WEIGHTS = (  # the first that exists is used, as in `from_marian`
    ("model.safetensors",),
    ("model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin",),
    ("pytorch_model.bin.index.json", "pytorch_model-*.bin"),
)
LIBRARY = {"library_name": "keras_vanilla", "library_version": __version__}
LOGIN = "log in with `hf auth login` or set HF_TOKEN"
OPUS_MT = re.compile(
    r"opus-mt(?:[-_](?:tc|tiny|small|base|big|bible|tatoeba))*"
    r"[-_](?P<source>[a-z]{2,3})-(?P<target>[a-z]{2,3})"
)


def from_hub(name: str) -> Translator:
    """Loads a Marian model, such as OPUS-MT, from the Hugging Face hub.

    This needs the package `huggingface_hub`, and uses its cache, token and environment
    variables (HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT and others). Only the
    files that `from_marian` reads and the model card are downloaded, unless cached.
    `about` has the repository's license and languages, and the commit that was read.

    Args:
        name: str. "OWNER/NAME", or "OWNER/NAME@REVISION" with a branch, a tag or a
            commit.
    Raises:
        ImportError: if `huggingface_hub` is not installed.
        FileNotFoundError: if the model, the revision or a file does not exist, or the
            model is private or gated.
        ConnectionError: if the hub cannot be reached and the model is not cached, or a
            download was interrupted.
        ValueError: if the name is malformed, or the model is not a Marian model.
    Example:
        translator = from_hub("Helsinki-NLP/opus-mt-de-en")
        translator.translate(["Guten Morgen."])
    """
    commit, folder = fetch(HubReference.parse(name))
    translator = from_marian(folder)
    has_codes = bool(translator.tokenizer.languages)
    return translator.replace(about=_about(commit, folder, has_codes))


def pinned(name: str) -> str:
    """Caches the files of a model, and returns a reference to its commit.

    Args:
        name: as in `from_hub`.
    Returns:
        Str, such as "hub:OWNER/NAME@COMMIT".
    Raises:
        ImportError, OSError, ValueError: as in `from_hub`.
    """
    commit, _ = fetch(HubReference.parse(name))
    return str(commit)


def fetch(model: HubReference) -> tuple[HubReference, Path]:
    """Caches the files of a model; returns its commit and the folder."""
    try:
        import huggingface_hub as hub
        from huggingface_hub import constants, errors
    except ImportError as error:
        raise extra_missing("Models of the hub", "huggingface-hub", "hub") from error
    missing = errors.RepositoryNotFoundError, errors.RevisionNotFoundError
    timeout = constants.HF_HUB_ETAG_TIMEOUT
    try:
        try:
            info = hub.HfApi(**LIBRARY).model_info(
                model.name, revision=model.revision, timeout=timeout
            )
        except missing:
            raise
        except Exception as error:  # no network, no right, or another server's page
            folder = _cached(hub, model, error)
        else:
            commit = model
            names = [file.rfilename for file in info.siblings or ()]
            for name in _needed(model, names):
                folder = _download(hub, commit, name)
                commit = HubReference(model.name, folder.name)  # branches move
    except missing as error:  # a gated model is one of them
        raise FileNotFoundError(
            f"The hub has no {model}, or it is private or gated: check the name, "
            f"accept the conditions on its page, and {LOGIN}."
        ) from error
    return HubReference(model.name, folder.name), folder


def _needed(model: HubReference, names: Sequence[str]) -> list[str]:
    """Returns the files to read, the weights last; refuses a model that lacks one."""
    weights = next((each for each in WEIGHTS if each[0] in names), None)
    missing = [name for name in REQUIRED if name not in names]
    if weights is None or missing:
        lack = missing[0] if missing else "model.safetensors or pytorch_model.bin"
        raise FileNotFoundError(
            f"{model} is not a Marian model of transformers: it has no {lack}."
        )
    return [
        *REQUIRED,
        *(name for name in OPTIONAL if name in names),
        *(name for pattern in weights for name in fnmatch.filter(names, pattern)),
    ]


def _download(hub: ModuleType, model: HubReference, name: str) -> Path:
    """Downloads a file unless it is cached; returns its folder."""
    try:
        path = hub.hf_hub_download(model.name, name, revision=model.revision, **LIBRARY)
    except hub.errors.GatedRepoError:
        raise
    except Exception as error:  # an interruption, another server's page, a full disk
        raise ConnectionError(
            f"{name} of {model} was not downloaded ({first_line(error)}): try again, "
            "files that are complete are kept."
        ) from error
    return Path(path).parent


def _cached(hub: ModuleType, model: HubReference, reason: Exception) -> Path:
    """Returns the folder of a model in the cache, with a warning.

    Args:
        hub: the package.
        model: HubReference.
        reason: the error of the request to the hub.
    """
    cache, offline = hub.constants.HF_HUB_CACHE, hub.constants.HF_HUB_OFFLINE
    why = f"the hub did not answer with its files: {first_line(reason)}"
    why = "HF_HUB_OFFLINE is set" if offline else why
    try:
        config = hub.hf_hub_download(
            model.name, CONFIG, revision=model.revision, local_files_only=True
        )
        folder = Path(config).parent  # a link whose file was deleted does not exist
        _needed(model, [path.name for path in folder.iterdir() if path.exists()])
    except FileNotFoundError:
        raise ConnectionError(
            f"{model} is not in the cache {cache}, or not all of its files, and {why}"
        ) from reason
    if not offline:
        warnings.warn(
            f"{model} is read from the cache, at the commit {folder.name}: {why}",
            stacklevel=5,
        )
    return folder


def _about(commit: HubReference, folder: Path, has_codes: bool) -> About:
    """Returns what name and card of a model state."""
    from huggingface_hub import metadata_load

    card: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # YAML errors have no common class
        card = metadata_load(folder / CARD) or {}
    name = commit.name.partition("/")[2]
    source, target = _languages(name, card.get("language"), has_codes)
    license_ = card.get("license_name") or card.get("license")
    return About(
        name=name,
        source_language=source,
        target_language=target,
        model_license=license_ if isinstance(license_, str) else None,
        converted_from=str(commit),
    )


def _languages(
    name: str, listed: object, has_codes: bool
) -> tuple[str | None, str | None]:
    """Infers both languages from a name of OPUS-MT, unless the card contradicts it.

    Args:
        name: str, such as "opus-mt-de-en".
        listed: the languages in the card, in no particular order.
        has_codes: bool. Whether each text begins with the code of its target language.
    Returns:
        Source and target language; None if unknown.
    """
    match = OPUS_MT.fullmatch(name)
    listed = [listed] if isinstance(listed, str) else listed
    listed = listed if isinstance(listed, list) else []
    listed = {"no" if tag is False else str(tag) for tag in listed}  # YAML's `no`
    if match is None or (listed and not set(match.groups()) <= listed):
        return None, None
    has_several_sources = len(listed) > 2 and not has_codes
    return (
        None if has_several_sources else match["source"],
        None if has_codes else match["target"],
    )
