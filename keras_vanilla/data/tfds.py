"""Public parallel corpora from tensorflow-datasets."""

import contextlib
import http.client
import logging
import os
import re
import sys

from keras_vanilla._checks import extra_missing
from keras_vanilla.data.lines import Lines, Packing, utf8

# The corpora of tensorflow-datasets 4.9.10 that translate between two languages.
KNOWN = (
    "flores",
    "opus",
    "para_crawl",
    "ted_hrlr_translate",
    *(f"wmt{year}_translate" for year in range(13, 20)),
    "wmt_t2t_translate",
)
NAME = re.compile(r"(\w+)(?:/([\w.+-]+))?(?::[\d.*]+)?")  # corpus/part:version
# Prefix of errors of tensorflow-datasets, before the cause.
PREAMBLE = re.compile(r"Failed to construct dataset .*?}\": ")
# With its default of ten, tensorflow-datasets takes 200 s to report a missing network.
ATTEMPTS = 5
EXAMPLES_AT_ONCE = 1000


def read_pairs(
    name: str,
    split: str,
    reverse: bool = False,
    data_dir: str | os.PathLike | None = None,
) -> tuple[Lines, Lines]:
    """Reads the source and target lines of a corpus; downloads it if necessary.

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
    sides = [(Packing(), f"{name} {split}, {language}") for language in languages]
    for examples in dataset.as_numpy_iterator():
        for (packing, origin), texts in zip(sides, examples, strict=True):
            for text in texts:
                packing.add(utf8(text, origin, len(packing) + 1))
    source, target = (packing.lines() for packing, _ in sides)
    return (target, source) if reverse else (source, target)


def split_names(
    name: str, data_dir: str | os.PathLike | None = None
) -> tuple[str, ...]:
    """The splits of a downloaded corpus, such as ("test", "train", "validation").

    Nothing is downloaded. The tuple is empty if the corpus was not downloaded before.

    Args:
        name: str, as for `ParallelCorpus.from_tfds`.
        data_dir: path, as for `ParallelCorpus.from_tfds`.
    Raises:
        ImportError, ValueError: same as `ParallelCorpus.from_tfds`, for the name.
    """
    builder = _builder(name, data_dir)
    _languages(builder, name)
    return tuple(builder.info.splits)


def _package():
    try:
        import importlib_resources  # noqa: F401  undeclared requirement of 4.9.10
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
    not_found = tfds.core.registered.DatasetNotFoundError
    try:
        if words is None:
            raise not_found
        corpus, part = words.groups()
        with contextlib.suppress(not_found):  # prepared data are read without code
            parts = sorted(tfds.builder_cls(corpus).builder_configs)
            if part not in parts and (part or len(parts) > 1):
                raise ValueError(
                    f"This corpus has the configurations {', '.join(parts) or 'none'}; "
                    f"`reverse` swaps the languages. Received: {name!r}"
                )
        return tfds.builder(name, data_dir=data_dir)
    except not_found:
        raise ValueError(
            f"There is no corpus {name!r} in tensorflow-datasets; translations are "
            f"{', '.join(KNOWN)}."
        ) from None
    except AssertionError as error:  # such as a missing version
        raise ValueError(f"{name}: {_one_line(error)}") from error


def _languages(builder, name):
    """The features of source and target."""
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
    except (OSError, http.client.HTTPException, tfds.download.DownloadError) as error:
        request = getattr(error, "request", None)
        reason = _one_line(error)
        if request is not None:
            reason = f"no answer from {request.url}; is there a network?"
        raise ConnectionError(f"{name} could not be downloaded: {reason}") from error
    except AssertionError as error:  # files to be fetched by hand, an old version
        raise ValueError(f"{name} cannot be prepared: {_one_line(error)}") from error


@contextlib.contextmanager
def _brief(tfds):
    """Fewer attempts, no output to stdout, progress bars only on a terminal."""
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


def _check_split(builder, name, split):
    splits = builder.info.splits
    try:
        examples = splits[split].num_examples
    except (AssertionError, KeyError, ValueError):
        examples = 0
    if not examples:
        sizes = (f"{each} of {splits[each].num_examples} examples" for each in splits)
        raise ValueError(f"{name} has {', '.join(sizes)}. Received: split={split!r}")


def _one_line(error):
    return PREAMBLE.sub("", str(error).strip()).split("\n")[0]
