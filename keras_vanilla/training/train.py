"""From parallel text to a saved translator."""

from collections.abc import Collection, Iterable

import keras

from keras_vanilla._about import About
from keras_vanilla._checks import refuse_unknown
from keras_vanilla._types import PathLike
from keras_vanilla.data import ParallelCorpus, TokenCache
from keras_vanilla.data.batching import check_corpus
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.tokenizer.protocol import check_tokenizer
from keras_vanilla.training.compilation import check_teaching, refuse_both
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.training.run import TrainingRun
from keras_vanilla.training.run_folder import RunFolder
from keras_vanilla.translation.saved_classes import class_name, tokenizer_config
from keras_vanilla.translation.translator import Translator


def train_translator(
    corpus: ParallelCorpus | TokenCache,
    output: PathLike,
    validation: ParallelCorpus | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    translator: Translator | None = None,
    teacher: Translator | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    optimizer: keras.optimizers.Optimizer | None = None,
    about: About | None = None,
    overwrite: bool = False,
    allow_changed: Collection[str] = (),
    **settings,
) -> Translator:
    """Trains a translator on a corpus and saves it.

    A training that was killed, and is started again with the same arguments, resumes
    from its last snapshot and ends as if it had not been killed.

    Writes into `output`: `translator.keras`, the one to use; `best.keras`, the epoch
    with the lowest cross-entropy on `validation`, or without it on the corpus (with
    `quantize`, the highest chrF on `validation`);
    `last.keras`; `results.json`; `history.csv` and, if TensorBoard is installed, its
    `logs/`; `run.json`, the settings and a list of these files; and, until it is
    finished, `snapshots/`.

    Args:
        corpus: ParallelCorpus or TokenCache to train on.
        output: path of a folder that does not exist yet, or holds this training,
            unfinished.
        validation: ParallelCorpus to validate on, or None.
        tokenizer: Tokenizer, or None to train one on the corpus; that of the cache.
        translator: Translator to train further, in place; it has its own size,
            tokenizer, dropout and precision. With `quantize` a copy in float32 is
            trained instead of one that has another precision.
        teacher: Translator, also an `ensemble`, for `word_level`: the model also learns
            its probabilities of each token. A new translator has its tokenizer.
        callbacks: more callbacks. Those with `get_state()` and `set_state(state)`, and
            Keras's own, continue where they were when a training is resumed.
        optimizer: a Keras optimizer instead of `transformer_optimizer`, with its own
            learning rate, clipping and weight decay.
        about: About or None. The name, languages, examples and licences of the
            translator that is returned, which its file keeps and exported files show.
            What it does not state is that of `translator`; without examples they are
            short sentences of `validation`.
        overwrite: bool. Replace another training in `output`. Only files that it lists
            as its own are deleted.
        allow_changed: names of what may differ from an unfinished training in `output`,
            which then continues with the new: "epochs", "loss", "micro_batches",
            "optimizer" (also its warm-up steps), "versions".
        **settings: values of `TrainingConfig`, such as `preset="tiny"` or `epochs=3`.
    Returns:
        The Translator of `translator.keras`: the average of the last epochs or the best
        epoch, whichever has the higher BLEU on `validation` (with `quantize`, chrF);
        without it, the average.
    Raises:
        TypeError: if there is no such setting, or `corpus`, `validation`, `translator`
            or `tokenizer` is of another class.
        FileExistsError: if `output` holds anything else, or without `overwrite` a
            finished training or one with other settings.
        FolderInUse: if another process trains into `output`.
        OSError: if `output` cannot be written.
        ValueError: if a value is out of its range or does not fit `translator`,
            `tokenizer`, `teacher` or `optimizer`, a class is not registered with Keras,
            a callback sets a learning rate that follows a schedule, or no pair is left
            to train on or to validate on.
        Diverged: if the loss is not a number.
        Interrupted: on Ctrl-C, after `last.keras` is written.
    Example:
        translator = train_translator(corpus, "de-en", validation, preset="small")
    Source: Vaswani et al. 2017, sections 5 and 6.1.
    """
    refuse_unknown("train_translator", settings, [*TrainingConfig.names(), *_OWN])
    config = TrainingConfig(**settings)
    _check_corpora(corpus, validation)
    _check_classes(translator, tokenizer, about)
    tokenizer = tokenizer_of_teacher(config, teacher, translator, tokenizer)
    config.check_start(translator, tokenizer)
    refuse_both(
        optimizer,
        config.learning_rate,
        clip_norm=config.clip_norm,
        weight_decay=config.weight_decay,
        cooldown_epochs=config.cooldown_epochs,
    )
    with RunFolder(output, overwrite) as folder:
        return TrainingRun(
            config,
            folder,
            corpus,
            validation,
            tokenizer=tokenizer,
            translator=translator,
            teacher=teacher,
            callbacks=callbacks,
            optimizer=optimizer,
            about=about,
            allow_changed=allow_changed,
        ).train()


def tokenizer_of_teacher(
    config: TrainingConfig,
    teacher: Translator | None,
    translator: Translator | None = None,
    tokenizer: Tokenizer | None = None,
) -> Tokenizer | None:
    """The tokenizer to train with: the one that is given, or the teacher's.

    Args:
        config: TrainingConfig.
        teacher: Translator to learn from, or None.
        translator: Translator to train further, or None.
        tokenizer: Tokenizer that is given, or None.
    Raises:
        ValueError: if there is a teacher without `word_level` or the other way round,
            or its tokenizer is not that of the translator or the one that is given.
    """
    check_teaching(teacher, config.word_level, config.r_drop)
    if teacher is None:
        return tokenizer
    own = tokenizer if translator is None else translator.tokenizer
    if own is not None and own.digest != teacher.tokenizer.digest:
        raise ValueError(
            "A teacher and its student must have one tokenizer for `word_level`. "
            "Received: two tokenizers that give other ids"
        )
    return teacher.tokenizer if translator is None else tokenizer


def _check_corpora(corpus, validation):
    check_corpus("corpus", corpus)
    if validation is not None and not isinstance(validation, ParallelCorpus):
        raise TypeError(
            "`validation` must be a ParallelCorpus, because its text is translated. "
            f"Received: a {type(validation).__name__}"
        )


def _check_classes(translator, tokenizer, about):
    """Refuses what could not be saved after the first epoch, or is something else."""
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


_OWN = (
    "validation",
    "tokenizer",
    "translator",
    "teacher",
    "callbacks",
    "optimizer",
    "about",
    "overwrite",
    "allow_changed",
)
