"""Creates an untrained translator."""

import inspect
import itertools
from collections.abc import Iterable

import keras

from keras_vanilla.data import ParallelCorpus, TokenCache
from keras_vanilla.data.noise import lines_with_noise
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.translation.translator import Translator


def new_translator(
    corpus: ParallelCorpus | TokenCache,
    config: TrainingConfig | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    **settings,
) -> Translator:
    """Creates an untrained translator for a corpus.

    Args:
        corpus: ParallelCorpus, to train a tokenizer and to choose the recipe by size.
        config: TrainingConfig; None means the defaults.
        tokenizer: Tokenizer, or None to train one on both sides of the corpus.
        **settings: values of `TrainingConfig`, such as `preset="tiny"` or
            `vocabulary_size=8000`, and arguments of `Transformer`, which replace those
            of the preset.
    Raises:
        TypeError: if a setting is unknown.
        ValueError: if a value is out of range, or a tokenizer is given together with
            settings for training one.
    Example:
        translator = new_translator(corpus, preset="tiny", max_length=60)
    """
    shape = set(inspect.signature(Transformer.__init__).parameters) - {"self", "kwargs"}
    names = TrainingConfig.names()
    transformer = {k: v for k, v in settings.items() if k in shape.difference(names)}
    others = {k: v for k, v in settings.items() if k not in transformer}
    known = ["tokenizer", *names, *sorted(shape)]
    config = TrainingConfig.of("new_translator", config, others, known)
    config.check_start(tokenizer=tokenizer)
    return untrained(config.resolve(len(corpus)), corpus, tokenizer, **transformer)


def untrained(
    config: TrainingConfig,
    corpus: ParallelCorpus | TokenCache,
    tokenizer: Tokenizer | None = None,
    **transformer,
) -> Translator:
    """Same as `new_translator`, for a resolved config.

    Args:
        config: TrainingConfig from `resolve`.
        corpus: ParallelCorpus.
        tokenizer: Tokenizer or None.
        **transformer: arguments of `Transformer`.
    Raises:
        ValueError: if a tokenizer is needed and the corpus has no text to train it on.
    """
    if tokenizer is None:
        if isinstance(corpus, TokenCache):
            raise ValueError(f"{corpus.origin}: a TokenCache needs its tokenizer.")
        tokenizer = train_tokenizer(config, corpus.sources, corpus.targets)
    keras.utils.set_random_seed(config.seed)
    arguments = {
        "source_vocabulary_size": tokenizer.vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
        "share_embeddings": tokenizer.shares_vocabulary,
        "pad_id": tokenizer.pad_id,
        "start_id": tokenizer.start_id,
        "end_id": tokenizer.end_id,
        "dropout": config.dropout,
        "dtype": config.dtype,
    }
    for name in ("max_length", "normalize_first"):
        if getattr(config, name) is not None:  # otherwise the preset's or the default
            arguments[name] = getattr(config, name)
    model = Transformer.from_preset(config.preset, **{**arguments, **transformer})
    return Translator(tokenizer, model)


def train_tokenizer(
    config: TrainingConfig, sources: Iterable[str], targets: Iterable[str]
) -> Tokenizer:
    """Trains the tokenizer of a new translator, with noise if the training has any.

    Args:
        config: TrainingConfig.
        sources: iterable of str.
        targets: iterable of str, the translations.
    """
    sides = sources, targets
    if config.robust:
        sides = map(lines_with_noise, sides)
    settings = {
        "vocabulary_size": config.vocabulary_size,
        "split_digits": config.robust,
    }
    if config.separate_vocabularies:
        return Tokenizer.train_separate(*sides, **settings)
    return Tokenizer.train(itertools.chain(*sides), **settings)
