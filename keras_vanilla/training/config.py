"""Training settings, and the recipe that chooses those that are not given."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from keras_vanilla._checks import (
    check_choice,
    check_integer,
    check_number,
    check_probability,
    refuse_unknown,
)
from keras_vanilla.training.freezing import checked_parts

if TYPE_CHECKING:  # the command line reads the settings before Keras is imported
    import keras

    from keras_vanilla.models.transformer import Transformer

# Section 5 of the paper; 20 epochs of its corpus are its 100,000 steps.
PAPER = {"tokens_per_batch": 25_000, "warmup_steps": 4000, "epochs": 20}

# The number of pairs below which a recipe is used. With fewer pairs, batches are
# smaller, so that an epoch has enough steps, and the learning rate peaks sooner.
RECIPES = (
    (
        20_000,
        {"dropout": 0.2, "tokens_per_batch": 1024, "warmup_steps": 1000, "epochs": 40},
    ),
    (100_000, {"tokens_per_batch": 2048, "warmup_steps": 1000, "epochs": 20}),
    (1_000_000, {"tokens_per_batch": 4096, "warmup_steps": 2000, "epochs": 15}),
    (float("inf"), {"tokens_per_batch": 8192, "warmup_steps": 4000, "epochs": 10}),
)

# The recipe's warm-up takes at most 1 / MOST_WARMUP of all steps.
MOST_WARMUP = 5

# Training with `quantize` only adapts weights to rounding.
QUANTIZED = {"epochs": 5, "learning_rate": 2e-4, "patience": 2}

# Settings that a translator to train further already has.
TRANSLATOR_OPTIONS = (
    "preset",
    "normalize_first",
    "max_length",
    "vocabulary_size",
    "separate_vocabularies",
    "dtype",
    "dropout",
)
TOKENIZER_OPTIONS = ("vocabulary_size", "separate_vocabularies")
FURTHER_TRAINING_OPTIONS = ("freeze", "quantize")
OPTIMIZER_OPTIONS = ("learning_rate", "clip_norm", "weight_decay", "cooldown_epochs")

_MAX_TOKENS = 256


def _choice(name, value, choices):
    """Returns the choice that equals the value, such as True for `numpy.True_`."""
    return choices[choices.index(check_choice(name, value, choices))]


def _preset(name, value):
    from keras_vanilla.models.presets import PRESETS

    return _choice(name, value, list(PRESETS))


def _policy_name(_, dtype):
    """The name of a precision policy."""
    import keras

    try:
        return keras.dtype_policies.get(dtype).name
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`dtype` must be a precision policy such as 'float32' or 'mixed_bfloat16'. "
            f"Received: {dtype!r}"
        ) from error


_positive = functools.partial(check_integer, least=1)
_not_negative = functools.partial(check_number, least=0)
_flag = functools.partial(_choice, choices=[False, True])


def _setting(default: Any, check: Callable, metavar: str | None, text: str, flag=None):
    """A field of `TrainingConfig` that is also an option of `keras-vanilla train`.

    Args:
        default: the default value; None is not checked.
        check: function of name and value that returns a plain int, float, bool, str or
            tuple of these.
        metavar: str. The value in the option's help; N is an int, one other letter a
            float. None for an option without a value.
        text: str. The option's help.
        flag: str. The option, if it is not the field's name.
    """
    metadata = {"check": check, "metavar": metavar, "help": text, "flag": flag}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """All settings of one training run, checked on creation.

    Settings that are None are chosen by `recipe` and the number of pairs; `resolve`
    fills them in:

    | pairs | dropout | tokens per batch | warm-up steps | epochs |
    | --- | --- | --- | --- | --- |
    | below 20,000 | 0.2 | 1,024 | 1,000 | 40 |
    | below 100,000 | the preset's | 2,048 | 1,000 | 20 |
    | below 1,000,000 | the preset's | 4,096 | 2,000 | 15 |
    | more | the preset's | 8,192 | 4,000 | 10 |
    | "paper" | the preset's | 25,000 | 4,000 | 20 |

    A warm-up that the recipe "auto" chooses takes at most a fifth of all steps, because
    a short training run would otherwise spend them with a learning rate near 0.

    Args:
        preset: name of the Transformer's size; None means "small".
        normalize_first: bool. Normalize before each sub-layer (pre-norm) or after it;
            None means the preset's choice.
        max_length: int. Longest sequence that the model accepts; None means 512.
        vocabulary_size: int. Number of pieces of the tokenizer to train; None chooses
            it by the size of the corpus.
        separate_vocabularies: bool. One vocabulary per language instead of a shared
            one.
        dtype: precision policy, such as "mixed_bfloat16", or a `keras.DTypePolicy`;
            None means Keras's global policy.
        dropout: float.
        tokens_per_batch: int. Target positions per batch, including padding.
        warmup_steps: int. Steps until the highest learning rate.
        learning_rate: float. A constant rate without warm-up, instead of the paper's
            schedule; for a translator that is trained further.
        cooldown_epochs: int. Number of last epochs in which the learning rate falls to
            0, see `Cooldown`; half of `epochs` is a good choice. 0, as in the paper,
            means no cooldown.
        freeze: "embeddings", "encoder", "decoder", or two of them. Parts that are not
            trained, for a translator that is trained further.
        quantize: "int8" or "int4". Trains a translator further for `.tflite` files in
            that precision, see `keras_vanilla.models.fake_quantize`. The best epoch has
            the highest chrF on the validation text. The recipe then chooses 5 epochs, a
            learning rate of 2e-4 and a patience of 2.
        epochs: int.
        label_smoothing: float.
        clip_norm: float. Largest global norm of the gradients; 0 means no limit.
        weight_decay: float. Fraction of each weight, times the learning rate, that is
            subtracted at each step.
        max_tokens: int. Longer pairs are left out; None means 256, or the model's
            `max_length` if that is lower.
        max_length_ratio: float. Pairs in which one side has more than this many times
            the tokens of the other are left out; None keeps all.
        drop_duplicates: bool. Leave out pairs that occurred before.
        sampling: float. Draw a new segmentation of each text in every epoch, from
            `seed` and the step. The value is the `alpha` of `Tokenizer.samplers`, such
            as 0.2; None always uses the best segmentation.
        robust: bool. Train with noise, see `keras_vanilla.data.noise`.
        average_last: int. Number of last epochs whose weights are averaged.
        patience: int. Training stops after this many epochs without a lower validation
            cross-entropy (without validation, the training's; with `quantize`, without
            a higher validation chrF). With a cooldown, epochs before it do not count.
            None trains for all `epochs`.
        seed: int. Seed of the initial weights, the order of the pairs and dropout.
        micro_batches: int. Number of micro-batches per batch; more need less memory.
        recipe: "auto" or "paper".
    Raises:
        TypeError: if a setting is unknown.
        ValueError: if a value is out of range, `warmup_steps` is combined with
            `learning_rate`, there are more cooldown epochs than epochs, or everything
            is frozen.
    Example:
        >>> config = TrainingConfig(epochs=3).resolve(pairs=50_000)
        >>> config.epochs, config.warmup_steps, config.preset
        (3, 1000, 'small')

    Source: Vaswani et al. 2017, section 5; Sennrich and Zhang 2019 for small corpora.
    """

    preset: str | None = _setting(
        None,
        _preset,
        "SIZE",
        "tiny, small, base, big, phone, phone-small or phone-tiny (default: small)",
    )
    normalize_first: bool | None = _setting(
        None,
        _flag,
        None,
        "normalize before each sublayer, not after it: learns sooner",
        flag="--pre-norm",
    )
    max_length: int | None = _setting(
        None,
        functools.partial(check_integer, least=2),
        "N",
        "longest text in tokens (default: 512)",
    )
    vocabulary_size: int | None = _setting(
        None, _positive, "N", "number of pieces (default: by the size of the corpus)"
    )
    separate_vocabularies: bool = _setting(
        False, _flag, None, "a vocabulary for each language, not one for both"
    )
    dtype: "str | keras.DTypePolicy | None" = _setting(
        None,
        _policy_name,
        "float32|mixed_bfloat16",
        "dtype in which the layers compute (default: float32)",
        flag="--precision",
    )
    recipe: str = _setting(
        "auto",
        functools.partial(_choice, choices=["auto", "paper"]),
        "auto|paper",
        "auto, by the size of the corpus; the next four options override it",
    )
    epochs: int | None = _setting(
        None, _positive, "N", "number of passes over the corpus"
    )
    tokens_per_batch: int | None = _setting(
        None, _positive, "N", "target positions of a batch, padding included"
    )
    warmup_steps: int | None = _setting(
        None, _positive, "N", "steps in which the learning rate rises to its highest"
    )
    dropout: float | None = _setting(
        None, check_probability, "P", "share of activations to drop"
    )
    learning_rate: float | None = _setting(
        None,
        functools.partial(check_number, above=0),
        "X",
        "use this constant learning rate, without warm-up",
    )
    cooldown_epochs: int = _setting(
        0,
        functools.partial(check_integer, least=0),
        "N",
        "number of last epochs, such as half, in which the rate falls to 0",
    )
    freeze: tuple[str, ...] = _setting(
        (),
        lambda _, parts: checked_parts(parts),
        "PART",
        "with --from, leave as they are: embeddings, encoder or decoder",
    )
    quantize: str | None = _setting(
        None,
        functools.partial(_choice, choices=["int8", "int4"]),
        "int8|int4",
        "with --from, train for .tflite files with these weights",
    )
    label_smoothing: float = _setting(
        0.1,
        check_probability,
        "P",
        "share of each label's probability that all tokens get (default: 0.1)",
    )
    clip_norm: float = _setting(
        0.0, _not_negative, "X", "largest norm of the gradients"
    )
    weight_decay: float = _setting(
        0.0,
        _not_negative,
        "X",
        "share of each weight to subtract, times the learning rate",
    )
    sampling: float | None = _setting(
        None,
        _not_negative,
        "A",
        "draw a new segmentation of each text in every epoch, such as 0.2",
    )
    robust: bool = _setting(
        False, _flag, None, "also train on typos, capitals and things to copy"
    )
    average_last: int = _setting(
        5, _positive, "N", "average the weights of the last N epochs (default: 5)"
    )
    patience: int | None = _setting(
        None,
        _positive,
        "N",
        "end after N epochs without a lower validation cross-entropy",
    )
    seed: int = _setting(
        0,
        functools.partial(check_integer, least=0, most=2**32 - 1),  # NumPy's limit
        "N",
        "seed of initial weights, order and dropout (default: 0)",
    )
    max_tokens: int | None = _setting(
        None,
        functools.partial(check_integer, least=2),
        "N",
        "leave out longer pairs (default: 256, or the model's longest text)",
    )
    max_length_ratio: float | None = _setting(
        None,
        functools.partial(check_number, least=1),
        "R",
        "leave out pairs with more than R times the tokens on one side",
    )
    drop_duplicates: bool = _setting(
        False, _flag, None, "leave out pairs that occurred before"
    )
    micro_batches: int = _setting(
        1, _positive, "N", "train on each batch in N parts, for less memory"
    )

    def __new__(cls, **values):
        refuse_unknown(cls.__name__, values, cls.names())
        return super().__new__(cls)

    def __post_init__(self):
        checked = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:  # None is left open
                checked[field.name] = field.metadata["check"](field.name, value)
        vars(self).update(checked)  # the only change of a frozen config
        from keras_vanilla.training.schedule import refuse_warmup_of_constant

        refuse_warmup_of_constant(self.learning_rate, self.warmup_steps)
        if self.epochs is not None and self.cooldown_epochs > self.epochs:
            raise ValueError(
                "`cooldown_epochs` must be at most the number of epochs, "
                f"{self.epochs}. Received: {self.cooldown_epochs}"
            )

    @classmethod
    def names(cls) -> list[str]:
        """The names of all settings."""
        return [field.name for field in dataclasses.fields(cls)]

    @classmethod
    def of(
        cls,
        owner: str,
        config: "TrainingConfig | None",
        settings: dict[str, Any],
        known: Collection[str],
    ) -> "TrainingConfig":
        """The config of a function that takes one, or some of its settings by name.

        Args:
            owner: str. The name of the function, for errors.
            config: the config that it received; None means the defaults.
            settings: dict of the settings that it received, which replace the config's.
            known: names of all its arguments, for errors.
        Raises:
            TypeError: if `config` has another type, or a setting is not known.
        """
        refuse_unknown(owner, settings, known)
        if config is None:
            return cls(**settings)
        if not isinstance(config, cls):
            raise TypeError(
                f"`config` must be a TrainingConfig. Received: {config!r:.80}"
            )
        return dataclasses.replace(config, **settings)

    def check_optimizer(self, optimizer: Any) -> None:
        """Refuses settings of `transformer_optimizer` together with another optimizer.

        Args:
            optimizer: the other optimizer, or None.
        Raises:
            ValueError: if an optimizer and such a setting are given.
        """
        given = self._set_by_user(OPTIMIZER_OPTIONS)
        if optimizer is not None and given:
            texts = (f"{name}={getattr(self, name)}" for name in given)
            raise ValueError(
                "An optimizer brings its own learning rate, clipping and weight decay: "
                f"set them in it. Received: {', '.join(texts)} and an optimizer"
            )

    def check_start(self, translator: Any = None, tokenizer: Any = None) -> None:
        """Refuses settings that do not fit the given translator or tokenizer.

        Args:
            translator: Translator to train further, or None for a new one.
            tokenizer: Tokenizer of a new translator, or None to train one.
        Raises:
            ValueError: if a setting is already fixed by the translator or tokenizer,
                both of these are given, `max_tokens` is above the model's `max_length`,
                a new translator is to be frozen or quantised, or the tokenizer has no
                alternative segmentations for `sampling` or is not a `Tokenizer` for
                `robust`.
        """
        if translator is not None:
            options = self._set_by_user(TRANSLATOR_OPTIONS)
            options += ["tokenizer"] * bool(tokenizer)
            if options:
                raise ValueError(
                    f"A translator to train further has its own {', '.join(options)}: "
                    "received both."
                )
        elif tokenizer is not None and self._set_by_user(TOKENIZER_OPTIONS):
            raise ValueError(
                "A tokenizer has its own vocabularies: give it, or `vocabulary_size` "
                "and `separate_vocabularies`, not both."
            )
        further = self._set_by_user(FURTHER_TRAINING_OPTIONS)
        if translator is None and further:
            name = further[0]
            raise ValueError(
                f"`{name}` is for a translator to train further: a new one has learned "
                f"nothing yet. Received: {name}={getattr(self, name)!r}"
            )
        if translator is not None:
            tokenizer = translator.tokenizer
        longest = self._longest(translator and translator.model)
        from keras_vanilla.data.noise import check_gives_texts
        from keras_vanilla.data.sampled_ids import samplers

        if self.sampling is not None and tokenizer is not None:
            samplers(tokenizer, self.sampling)
        if self.robust and tokenizer is not None:
            check_gives_texts(tokenizer)
        if self.max_tokens is not None and self.max_tokens > longest:
            raise ValueError(
                "`max_tokens` must be at most the model's `max_length`, "
                f"{longest}. Received: {self.max_tokens}"
            )

    def resolve(
        self, pairs: int, model: "Transformer | None" = None
    ) -> "TrainingConfig":
        """Returns a config in which the recipe has replaced None by numbers.

        Args:
            pairs: int. Number of pairs to train on.
            model: Transformer to train further, or None for a new one.
        """
        import keras

        from keras_vanilla.models.presets import PRESETS

        paper = self.recipe == "paper"
        recipe = (
            PAPER if paper else next(recipe for most, recipe in RECIPES if pairs < most)
        )
        if model is None:
            preset = self.preset or "small"
            defaults = {"preset": preset, "dtype": keras.config.dtype_policy().name}
            chosen = {**defaults, "dropout": PRESETS[preset]["dropout"], **recipe}
        else:
            of_model = {"dropout": model.dropout, "dtype": model.dtype_policy.name}
            chosen = {**recipe, **of_model}
        chosen["max_tokens"] = self.longest_pair(model)
        if self.quantize is not None:
            chosen |= QUANTIZED
        if self.warmup_steps is not None:
            chosen.pop("learning_rate", None)
        elif self.learning_rate is not None or "learning_rate" in chosen:
            del chosen["warmup_steps"]
        missing = {name for name in chosen if getattr(self, name) is None}
        return dataclasses.replace(self, **{name: chosen[name] for name in missing})

    def with_short_warmup(self, total_steps: int) -> "TrainingConfig":
        """Returns a config with a warm-up of at most a fifth of all steps.

        Its learning rate follows `schedule.decay_after_short_warmup`.

        Args:
            total_steps: int. Total number of training steps.
        """
        if self.warmup_steps is None:
            return self
        most = max(1, total_steps // MOST_WARMUP)
        return dataclasses.replace(self, warmup_steps=min(self.warmup_steps, most))

    def longest_pair(self, model: "Transformer | None" = None) -> int:
        """The largest number of tokens per side; longer pairs are left out.

        Args:
            model: Transformer to train further, or None for a new one.
        """
        return self.max_tokens or min(self._longest(model), _MAX_TOKENS)

    def to_dict(self) -> dict[str, Any]:
        """All settings, as values that JSON supports."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        if self.learning_rate is None:
            rate = f"{self.warmup_steps:,} warm-up steps"
        else:
            rate = f"learning rate {self.learning_rate:g}"
        last = self.cooldown_epochs
        cooldown = f", cooldown over the last {last}" if last else ""
        sampled = "" if self.sampling is None else f", sampling {self.sampling:g}"
        sampled += ", noise" if self.robust else ""
        frozen = f", {' and '.join(self.freeze)} frozen" if self.freeze else ""
        rounded = f", for {self.quantize} files" if self.quantize else ""
        return (
            f"dropout {self.dropout}, label smoothing {self.label_smoothing}, "
            f"{self.tokens_per_batch:,} tokens per batch, {rate}, "
            f"{self.epochs} epochs{cooldown}{sampled}{frozen}{rounded}"
        )

    def _longest(self, model):
        """The longest sequence of the model to train."""
        if model is not None or self.max_length is not None:
            return (model or self).max_length
        from keras_vanilla.models.transformer import Transformer

        return inspect.signature(Transformer.__init__).parameters["max_length"].default

    def _set_by_user(self, names):
        """Those of the names that the user has set."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return [name for name in names if getattr(self, name) != defaults[name]]
