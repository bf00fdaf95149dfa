"""Trains and saves a translator from parallel text.

The command `keras-vanilla train` enters at `TrainingRun` in `run.py` instead.
"""

import inspect
from collections.abc import Collection, Sequence

import keras

from keras_vanilla._about import About
from keras_vanilla._types import PathLike
from keras_vanilla.data import ParallelCorpus, TokenCache
from keras_vanilla.data.batching import check_corpus
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.tokenizer.protocol import check_tokenizer
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.training.run import TrainingRun
from keras_vanilla.training.run_folder import RunFolder
from keras_vanilla.translation.saved_classes import class_name, tokenizer_config
from keras_vanilla.translation.translator import Translator


def train_translator(
    corpus: ParallelCorpus | TokenCache,
    output: PathLike,
    validation: ParallelCorpus | None = None,
    config: TrainingConfig | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    translator: Translator | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    optimizer: keras.optimizers.Optimizer | None = None,
    about: About | None = None,
    overwrite: bool = False,
    allow_changed: Collection[str] = (),
    **settings,
) -> Translator:
    """Trains a translator on a corpus and saves it.

    An interrupted run that is started again with the same arguments resumes from its
    last snapshot, with the same result as an uninterrupted run.

    These files are written to `output`: `translator.keras`, the final translator;
    `best.keras`, the epoch with the lowest cross-entropy on `validation`, or without it
    on the corpus (with `quantize`, the highest chrF on `validation`); `last.keras`;
    `results.json`; `history.csv` and, if TensorBoard is installed, `logs/`; `run.json`,
    the settings and a list of these files; and, until the end, `snapshots/`.

    Args:
        corpus: ParallelCorpus or TokenCache to train on.
        output: path of a folder that does not exist yet, or that holds this run,
            unfinished.
        validation: ParallelCorpus to validate on, or None.
        config: TrainingConfig; None means the defaults.
        tokenizer: Tokenizer, or None to train one on the corpus; for a TokenCache, its
            tokenizer.
        translator: Translator to train further, in place; its size, tokenizer, dropout
            and precision are kept. With `quantize`, a float32 copy is trained if it has
            another precision.
        callbacks: additional callbacks. Those with `get_state()` and
            `set_state(state)`, and Keras's, are restored when a run is resumed.
        optimizer: a Keras optimizer to use instead of `transformer_optimizer`, with its
            learning rate, clipping and weight decay.
        about: About or None. The name, languages, examples and licences of the returned
            translator, which are saved with it and shown by exported files. Missing
            values are taken from `translator`, missing examples are short sentences of
            `validation`.
        overwrite: bool. Start anew, whatever run is in `output`; it is not resumed.
            Only files that it lists as its own are deleted.
        allow_changed: names of settings that may differ from an unfinished run in
            `output`, which continues with the new ones: "epochs", "loss",
            "micro_batches", "optimizer" (including its warm-up steps), "versions".
        **settings: values of `TrainingConfig`, such as `preset="tiny"` or `epochs=3`,
            instead of those of `config`.
    Returns:
        The Translator of `translator.keras`: the average of the last epochs or the best
        epoch, whichever has the higher BLEU on `validation` (with `quantize`, chrF);
        without it, the average.
    Raises:
        TypeError: if a setting is unknown, or `corpus`, `validation`, `config`,
            `translator`, `tokenizer` or `callbacks` has the wrong type.
        FileExistsError: if `output` holds anything else, or, without `overwrite`, a
            finished run or one with other settings.
        FolderInUse: if another process trains in `output`.
        OSError: if `output` cannot be written.
        ValueError: if the record in `output` is damaged or of version 0.7.0 or earlier
            (also with `overwrite`), a value is out of range or does not fit
            `translator`, `tokenizer` or `optimizer`, a class is not registered with
            Keras, a callback sets a learning rate that follows a schedule, or no pairs
            remain for training or validation.
        Diverged: if the loss is not a number.
        Interrupted: on Ctrl-C, after `last.keras` is written.
    Example:
        translator = train_translator(corpus, "de-en", validation, preset="small")
    Source: Vaswani et al. 2017, sections 5 and 6.1.
    """
    known = [*TrainingConfig.names(), *_optional_arguments()]
    config = TrainingConfig.of("train_translator", config, settings, known)
    check_corpus("corpus", corpus)
    if validation is not None and not isinstance(validation, ParallelCorpus):
        raise TypeError(
            "`validation` must be a ParallelCorpus, because its text is translated. "
            f"Received: a {type(validation).__name__}"
        )
    _check_classes(translator, tokenizer, about)
    config.check_start(translator, tokenizer)
    config.check_optimizer(optimizer)
    with RunFolder(output, overwrite) as folder:
        return TrainingRun(
            config,
            folder,
            corpus,
            validation,
            tokenizer=tokenizer,
            translator=translator,
            callbacks=callbacks,
            optimizer=optimizer,
            about=about,
            allow_changed=allow_changed,
        ).train()


def _optional_arguments():
    """Names of the arguments of `train_translator` that have a default."""
    parameters = inspect.signature(train_translator).parameters.values()
    return [each.name for each in parameters if each.default is not each.empty]


def _check_classes(translator, tokenizer, about):
    """Refuses wrong types, and classes that could not be saved after an epoch."""
    if translator is not None:
        if not isinstance(translator, Translator):
            raise TypeError(
                "`translator` must be a Translator. Received: a "
                f"{type(translator).__name__}"
            )
        class_name(translator)
        translator.get_config()  # names the classes of its model and its tokenizer
    if tokenizer is not None:
        check_tokenizer(tokenizer)
        tokenizer_config(tokenizer)
    if not isinstance(about, About | None):
        raise TypeError(f"`about` must be an About. Received: {about!r}")
