"""Public parallel corpora by name, through tensorflow-datasets."""

import contextlib
import http.client
import logging
import os
import re
import sys
import urllib.error

from keras_vanilla._checks import extra_missing
from keras_vanilla.data.lines import Lines, Packing, utf8

# Those of tensorflow-datasets 4.9.10 that are translations between two languages.
KNOWN = (
    "flores",
    "opus",
    "para_crawl",
    "ted_hrlr_translate",
    *(f"wmt{year}_translate" for year in range(13, 20)),
    "wmt_t2t_translate",
)
NAME = re.compile(r"(\w+)(?:/([\w.+-]+))?(?::[\d.*]+)?")  # corpus/part:version
# Errors of tensorflow-datasets begin with this before they name the cause.
PREAMBLE = re.compile(r"Failed to construct dataset .*?}\": ")
# With its default of ten, tensorflow-datasets takes 200 s to report no network.
ATTEMPTS = 5
EXAMPLES_AT_ONCE = 1000


def read_pairs(
    name: str,
    split: str,
    reverse: bool = False,
    data_dir: str | os.PathLike | None = None,
) -> tuple[Lines, Lines]:
    """The source and the target lines of a corpus, which is downloaded if necessary.

    Args and Raises: as for `ParallelCorpus.from_tfds`.
    """
    builder = _builder(name, data_dir)
    languages = _languages(builder, name)
    _prepare(builder, name)
    _check_split(builder, name, split)
    config = _package().ReadConfig(interleave_cycle_length=1, try_autocache=False)
    dataset = builder.as_dataset(
        split, batch_size=EXAMPLES_AT_ONCE, read_config=config, as_supervised=True
    )
    sides = [_Side(f"{name} {split}, {language}") for language in languages]
    for examples in dataset.as_numpy_iterator():
        for side, texts in zip(sides, examples, strict=True):
            side.add(texts)
    source, target = (side.lines() for side in sides)
    return (target, source) if reverse else (source, target)


def split_names(
    name: str, data_dir: str | os.PathLike | None = None
) -> tuple[str, ...]:
    """The splits of a downloaded corpus, such as ("test", "train", "validation").

    Nothing is downloaded. The tuple is empty if the corpus was not downloaded before.

    Args:
        name: str, as in `ParallelCorpus.from_tfds`.
        data_dir: path, as there.
    Raises:
        ImportError, ValueError: as there, for the name.
    """
    builder = _builder(name, data_dir)
    _languages(builder, name)
    return tuple(builder.info.splits)


class _Side:
    """Collects the lines of one language."""

    def __init__(self, origin):
        self._origin, self._packing, self._read = origin, Packing(), 0

    def add(self, texts):
        for number, text in enumerate(texts, start=self._read + 1):
            self._packing.add(utf8(text, self._origin, number))
        self._read += len(texts)

    def lines(self):
        return self._packing.lines()


def _package():
    try:
        import importlib_resources  # noqa: F401  4.9.10 needs it and does not say so
        import tensorflow_datasets
    except ImportError as error:
        raise extra_missing(
            "Corpora by name", "tensorflow-datasets", "corpora"
        ) from error
    return tensorflow_datasets


def _builder(name, data_dir):
    tfds = _package()
    name = name.removeprefix("tfds:")
    words = NAME.fullmatch(name)
    if words is None:
        raise _unknown(name)
    corpus, part = words.groups()
    parts = _parts(tfds, corpus)
    if len(parts) > 1 and part is None:  # tensorflow-datasets takes the first
        raise _without_part(name, parts)
    try:
        return tfds.builder(name, data_dir=data_dir)
    except tfds.core.registered.DatasetNotFoundError:
        raise _unknown(name) from None
    except (AssertionError, ValueError) as error:
        if parts and part not in parts:
            raise _without_part(name, parts) from None
        raise ValueError(f"{name}: {_one_line(error)}") from error


def _parts(tfds, corpus):
    try:
        return sorted(tfds.builder_cls(corpus).builder_configs)
    except tfds.core.registered.DatasetNotFoundError:
        return []  # a prepared corpus is read without its code


def _languages(builder, name):
    """The source's and the target's feature."""
    features, languages = builder.info.features, builder.info.supervised_keys
    of_translation = isinstance(features, _package().features.Translation)
    if not of_translation or len(features) != 2 or set(languages or ()) != {*features}:
        raise ValueError(
            f"{name} is not a translation between two languages, as these are: "
            f"{', '.join(KNOWN)}."
        )
    return languages


def _prepare(builder, name):
    """Downloads the corpus and writes it as records, unless this was done before."""
    tfds = _package()
    options = tfds.download.DownloadConfig(try_download_gcs=False)
    try:
        with _brief(tfds):
            builder.download_and_prepare(download_config=options)
    except tfds.download.download_manager.NonMatchingChecksumError as error:
        raise ValueError(f"{name}: {_one_line(error).rstrip(':')}.") from error
    except _network_errors(tfds) as error:
        raise ConnectionError(
            f"{name} could not be downloaded: {_reason(error)}"
        ) from error
    except AssertionError as error:  # files to be fetched by hand, an old version
        raise ValueError(f"{name} cannot be prepared: {_one_line(error)}") from error


@contextlib.contextmanager
def _brief(tfds):
    """Fewer attempts; nothing on stdout, and progress bars only on a terminal."""
    from tensorflow_datasets.core.download import downloader
    from tensorflow_datasets.core.utils import tqdm_utils

    assign = tfds.core.utils.temporary_assignment
    retries = logging.getLogger("urllib3.connectionpool")
    with (
        assign(downloader, "MAX_RETRIES", ATTEMPTS),
        assign(tqdm_utils, "_active", sys.stderr.isatty()),
        assign(retries, "disabled", True),
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield


def _network_errors(tfds):
    import requests

    return (
        requests.exceptions.RequestException,
        urllib.error.URLError,
        ConnectionError,
        TimeoutError,
        http.client.HTTPException,
        tfds.download.DownloadError,
    )


def _check_split(builder, name, split):
    splits = builder.info.splits
    try:
        examples = splits[split].num_examples
    except (AssertionError, KeyError, ValueError):
        examples = 0
    if not examples:
        sizes = (f"{each} of {splits[each].num_examples} examples" for each in splits)
        raise ValueError(f"{name} has {', '.join(sizes)}. Received: split={split!r}")


def _unknown(name):
    return ValueError(
        f"There is no corpus {name!r} in tensorflow-datasets; translations are "
        f"{', '.join(KNOWN)}."
    )


def _without_part(name, parts):
    return ValueError(
        f"This corpus has the configurations {', '.join(parts)}; `reverse` swaps the "
        f"languages. Received: {name!r}"
    )


def _reason(error):
    request = getattr(error, "request", None)
    if request is None:
        return _one_line(error)
    return f"no answer from {request.url}; is there a network?"


def _one_line(error):
    return PREAMBLE.sub("", str(error).strip()).split("\n")[0]
