"""Loads Marian models, such as OPUS-MT, from the Hugging Face hub by name."""

import contextlib
import fnmatch
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_vanilla._about import About
from keras_vanilla._checks import extra_missing, first_line
from keras_vanilla._hub_reference import HubReference
from keras_vanilla._version import __version__
from keras_vanilla.interop.files.json_file import read_json_object
from keras_vanilla.interop.marian import from_marian
from keras_vanilla.translation import Translator

CONFIG, CARD = "config.json", "README.md"
REQUIRED = "source.spm", "target.spm", "vocab.json"
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
        FileNotFoundError: if the model, the revision or a file does not exist.
        PermissionError: if the model is gated.
        ConnectionError: if the hub cannot be reached and the model is not cached, or a
            download was interrupted.
        OSError: if the disk is full.
        ValueError: if the name is malformed, or the model is not a Marian model.
    Example:
        translator = from_hub("Helsinki-NLP/opus-mt-de-en")
        translator.translate(["Guten Morgen."])
    """
    commit, folder = _fetch(HubReference.parse(name))
    translator = from_marian(folder)
    has_codes = bool(translator.tokenizer.languages)
    return translator.replace(about=_about(commit, _card(folder / CARD), has_codes))


def pinned(name: str) -> str:
    """Caches the files of a model, and returns a reference to its commit.

    Args:
        name: as in `from_hub`.
    Returns:
        Str, such as "hub:OWNER/NAME@COMMIT".
    Raises:
        ImportError, OSError, ValueError: as in `from_hub`.
    """
    commit, _ = _fetch(HubReference.parse(name))
    return str(commit)


def _fetch(model: HubReference) -> tuple[HubReference, Path]:
    """Caches the files of a model; returns its commit and the folder."""
    hub = _hub()
    errors, timeout = hub.errors, hub.constants.HF_HUB_ETAG_TIMEOUT
    try:
        try:
            info = hub.HfApi(**LIBRARY).model_info(
                model.name, revision=model.revision, timeout=timeout
            )
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise
        except Exception as error:  # no network, no right, or another server's page
            folder = _cached(hub, model, error)
        else:
            names = [file.rfilename for file in info.siblings or ()]
            folder = _downloaded(hub, model, names)
    except errors.GatedRepoError as error:
        raise PermissionError(
            f"{model} is gated: accept its conditions on its page of the hub, then "
            f"{LOGIN}."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"The hub has no model {model.name}, or it is private: check the name, or "
            f"{LOGIN}."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(
            f"{model.name} has no revision {model.revision}: give a branch, a tag or a "
            "commit of it."
        ) from error
    return HubReference(model.name, folder.name), folder


def _hub():
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError as error:
        raise extra_missing("Models of the hub", "huggingface-hub", "hub") from error
    return huggingface_hub


def _cached(hub, model: HubReference, reason: Exception) -> Path:
    """Returns the folder of a model in the cache, with a warning.

    Args:
        hub: the package.
        model: HubReference.
        reason: the error of the request to the hub.
    """
    cache, offline = hub.constants.HF_HUB_CACHE, hub.constants.HF_HUB_OFFLINE
    status = getattr(getattr(reason, "response", None), "status_code", None)
    shown = first_line(reason) if status is None else f"status {status}, {reason!s:.80}"
    why = f"the hub did not answer with its files: {' '.join(shown.split())}"
    why = "HF_HUB_OFFLINE is set" if offline else why
    try:
        config = hub.hf_hub_download(
            model.name, CONFIG, revision=model.revision, local_files_only=True
        )
    except hub.errors.LocalEntryNotFoundError:
        raise ConnectionError(
            f"{model} is not in the cache {cache}, and {why}"
        ) from reason
    folder = Path(config).parent
    _check_architecture(model, folder)
    try:  # a link whose file was deleted does not exist
        _needed(model, [path.name for path in folder.iterdir() if path.exists()])
    except FileNotFoundError as error:
        raise ConnectionError(
            f"Only a part of {model} is in the cache {cache} ({error}), and {why}"
        ) from reason
    if not offline:
        warnings.warn(
            f"{model} is read from the cache, at the commit {folder.name}: {why}",
            stacklevel=5,
        )
    return folder


def _needed(model: HubReference, names: Sequence[str]) -> list[str]:
    """Returns the files to read, the weights last; refuses a model that lacks one."""
    weights = next((each for each in WEIGHTS if each[0] in names), None)
    missing = [name for name in REQUIRED if name not in names]
    if weights is None or missing:
        lack = missing[0] if missing else "model.safetensors or pytorch_model.bin"
        raise FileNotFoundError(f"{model} has no {lack}, which Marian models have.")
    return [
        *REQUIRED,
        *(name for name in OPTIONAL if name in names),
        *(name for pattern in weights for name in fnmatch.filter(names, pattern)),
    ]


def _downloaded(hub, model: HubReference, names: Sequence[str]) -> Path:
    """Downloads those of a repository's files that are needed; returns their folder."""
    if CONFIG not in names:
        raise ValueError(
            f"{model} has no {CONFIG}: it is not a Marian model of transformers."
        )
    folder = _download(hub, model, CONFIG)
    _check_architecture(model, folder)
    commit = HubReference(model.name, folder.name)  # branches move
    for name in _needed(model, names):
        _download(hub, commit, name)
    return folder


def _download(hub, model, name):
    """Downloads a file unless it is cached; returns its folder."""
    try:
        path = hub.hf_hub_download(model.name, name, revision=model.revision, **LIBRARY)
    except (OSError, RuntimeError, hub.errors.HTTPError) as error:
        is_local = getattr(error, "errno", None) and not isinstance(
            error, ConnectionError
        )
        if is_local or isinstance(error, hub.errors.GatedRepoError):
            raise  # such as a full disk
        raise ConnectionError(
            f"The download of {name} of {model.name} was interrupted "
            f"({first_line(error)}): try again, files that are complete are kept."
        ) from error
    return Path(path).parent


def _check_architecture(model: HubReference, folder: Path) -> None:
    config = read_json_object(folder / CONFIG)
    kind = config.get("model_type")
    if kind != "marian":
        names = config.get("architectures")
        received = str(names[0]) if isinstance(names, list) and names else repr(kind)
        raise ValueError(
            f"{model} must be a MarianMTModel, as models of OPUS-MT are. Received: "
            f"{received}; the package transformers has models of other kinds"
        )


def _card(path: Path) -> dict[str, Any]:
    """Returns the metadata of the model card; empty if it cannot be read."""
    from huggingface_hub import metadata_load

    card = None
    with contextlib.suppress(Exception):  # YAML errors have no common class
        card = metadata_load(path)
    return card or {}


def _about(commit: HubReference, card: Mapping[str, Any], has_codes: bool) -> About:
    name = commit.name.partition("/")[2]
    source, target = _languages(name, card.get("language"), has_codes)
    license_ = card.get("license")
    if license_ == "other":
        license_ = card.get("license_name") or license_
    return About(
        name=name,
        source_language=source,
        target_language=target,
        model_license=license_ if _is_unicode(license_) else None,
        converted_from=str(commit),
    )


def _is_unicode(text: object) -> bool:
    """Returns False also for a text with a lone surrogate, which YAML can have."""
    return isinstance(text, str) and text == text.encode("utf-8", "replace").decode()


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
