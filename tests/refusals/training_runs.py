"""What trainings, their settings and their callbacks refuse."""

import functools
from functools import partial

import keras
from refusal import Refusal

from keras_vanilla import Transformer, Translator
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import CharacterTokenizer, WordTokenizer
from keras_vanilla.training import (
    AverageCheckpoints,
    Cooldown,
    ExactResume,
    SmoothedCrossentropy,
    TrainingConfig,
    TransformerSchedule,
    compile_for_training,
    new_translator,
    train_translator,
    transformer_optimizer,
)
from keras_vanilla.training.resume.snapshots import pack
from keras_vanilla.training.run_folder import RunFolder

COMPLETE = (
    "training/callbacks.py",
    "training/compilation.py",
    "training/config.py",
    "training/freezing.py",
    "training/resume/callback_state.py",
    "training/train.py",
)


class Unread(ParallelCorpus):
    """A corpus that must not be touched."""

    def __init__(self):
        pass

    def __getattr__(self, name):
        raise AssertionError(name)


class UnregisteredTokenizer(CharacterTokenizer):
    pass


class UnregisteredTransformer(Transformer):
    pass


class UnregisteredTranslator(Translator):
    pass


class LogsBatches(keras.callbacks.TensorBoard):
    pass


class Odd(keras.callbacks.Callback):
    pass


WORDS = WordTokenizer.train(["one two"])
FEW = ParallelCorpus(["one two", "three"], ["een twee", "drie"])


@functools.cache
def translator_of(transformer=Transformer, translator=Translator, tokenizer=WORDS):
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 8, "max_length": 30}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = transformer(tokenizer.vocabulary_size, **sizes, **layers)
    return translator(tokenizer, model)


def endless():
    """Batches, given in the place of another argument: they have no end."""
    return batches(ParallelCorpus(["one", "two"], ["two", "one"]), WORDS)


def config(pattern=None, **settings):
    """A row of a config: by default its only setting and the value are named."""
    ((name, value),) = list(settings.items())[:1]
    pattern = pattern or f"`{name}` must .*{value!r}"
    return Refusal(f"config {settings}", lambda: TrainingConfig(**settings), pattern)


def start(name, pattern, translator=None, tokenizer=None, **settings):
    """A row of a config that does not fit the translator or the tokenizer."""

    def call():
        given = [each() if callable(each) else each for each in (translator, tokenizer)]
        TrainingConfig(**settings).check_start(*given)

    return Refusal(f"start: {name}", call, pattern)


def train(name, pattern, error=ValueError, **arguments):
    """A row of `train_translator`, which reads nothing and writes only a lock."""

    def call(folder):
        given = {key: each() if callable(each) else each for key, each in more.items()}
        try:
            train_translator(given.pop("corpus", Unread()), folder / "out", **given)
        finally:
            assert not any((folder / "out").glob("[!.]*"))

    more = arguments
    return Refusal(f"train: {name}", call, pattern, error)


def compiled(name, pattern, error=ValueError, *arguments, **settings):
    def call():
        compile_for_training(translator_of().model, *arguments, **settings)

    return Refusal(f"compile: {name}", call, pattern, error)


def exact(name, pattern, error=ValueError, callbacks=(), **settings):
    def call(folder):
        given = callbacks() if callable(callbacks) else callbacks
        others = {k: v() if callable(v) else v for k, v in settings.items()}
        ExactResume(folder, given, **others)

    return Refusal(f"exact resume: {name}", call, pattern, error)


def in_the_way(folder):
    (folder / "file").write_text("kept")
    train_translator(Unread(), folder / "file" / "out")


def damaged_record(folder):
    (folder / "run.json").write_text("{")
    train_translator(Unread(), folder)


ROWS = [
    config(epochs=0),
    config(epochs=1.5),
    config(tokens_per_batch=0),
    config(warmup_steps=-1),
    config(vocabulary_size=0),
    config(dropout=1.0),
    config(dropout=-0.1),
    config(label_smoothing=float("nan")),
    config(label_smoothing=None),
    config(seed=-1),
    config(seed=2**32),
    config(seed=True),
    config(micro_batches=0),
    config(micro_batches="2"),
    config(max_tokens=1),
    config(max_length=1),
    config(max_length_ratio=0.9),
    config(drop_duplicates="yes"),
    config(drop_duplicates=None),
    config(clip_norm=-1),
    config(clip_norm=None),
    config(weight_decay=float("inf")),
    config(learning_rate=-0.1),
    config(learning_rate=0),
    config(learning_rate="fast"),
    config(sampling=-0.1),
    config(freeze="everything"),
    config(freeze=["encoder", "decoder", "embeddings"], pattern="`freeze` .*decoder"),
    config(quantize="int2"),
    config(patience=0),
    config(average_last=0),
    config(preset="huge"),
    config(preset="smal", pattern="Did you mean 'small'"),
    config(recipe="best"),
    config(dtype="float31"),
    config(separate_vocabularies="yes"),
    config(normalize_first="yes"),
    config(cooldown_epochs=4, epochs=3, pattern="`cooldown_epochs` .* 3.* 4"),
    config(learning_rate=0.1, warmup_steps=9, pattern="rate=0.1, warmup_steps=9"),
    Refusal(
        "config: unknown setting",
        lambda: TrainingConfig(epoch=3),
        "TrainingConfig has no .*'epoch'.*'epochs'",
        TypeError,
    ),
    Refusal(
        "config: endless parts",
        lambda: TrainingConfig(freeze=endless()),
        "`freeze` must be a list .*Batches",
        TypeError,
    ),
    Refusal(
        "config: cooldown of the recipe's epochs",
        lambda: TrainingConfig(cooldown_epochs=21).resolve(pairs=50_000),
        "`cooldown_epochs` .* 20.* 21",
    ),
    start("size", "own vocabulary_size: .*both", translator_of, vocabulary_size=400),
    start("preset", "own preset, dropout", translator_of, preset="tiny", dropout=0.0),
    start("pre-norm", "own normalize_first", translator_of, normalize_first=True),
    start("tokenizer", "own tokenizer: received both", translator_of, WORDS),
    start("length", "`max_length`, 30.* 31", translator_of, max_tokens=31),
    start("new length", "`max_length`, 512.* 600", max_tokens=600),
    start("given length", "`max_length`, 60.* 70", max_length=60, max_tokens=70),
    start("vocabulary", "own vocabularies", None, WORDS, vocabulary_size=320),
    start("frozen", r"freeze=\('encoder',\)", freeze="encoder"),
    start("quantised", "quantize='int8'", quantize="int8"),
    start("sampling", "`sampling` .*WordTokenizer", None, WORDS, sampling=0.2),
    start("sampled model", "`sampling` .*WordTok", translator_of, sampling=0.2),
    start("noise", "`Tokenizer`.*WordTokenizer", None, WORDS, robust=True),
    train("preset", "`preset` must be one of .*'huge'", preset="huge"),
    train("setting", "'overwite'.*'overwrite'", TypeError, overwite=True),
    train("config", "`config` must .*3", TypeError, config=3),
    train("optimizer", "cooldown_epochs=4", optimizer="sgd", cooldown_epochs=4),
    train("corpus", "`corpus` .*a list", TypeError, corpus=lambda: [("one", "een")]),
    train("validation", "`validation` .*a str", TypeError, validation="val.txt"),
    train("tokenizer", "`tokenizer` .*a str", TypeError, tokenizer="de.model"),
    train("about", "`about` must .*'x'", TypeError, about="x"),
    train("callbacks", "`callbacks` .*a Batches", TypeError, callbacks=endless),
    train("allowed", "`allow_changed` .*a Batc", TypeError, allow_changed=endless),
    train(
        "model",
        "`translator` .*a Transformer",
        TypeError,
        translator=lambda: translator_of().model,
    ),
    train(
        "unregistered tokenizer",
        "UnregisteredTokenizer cannot be saved",
        tokenizer=lambda: UnregisteredTokenizer.train(["one two"]),
    ),
    train(
        "unregistered model",
        "UnregisteredTransformer cannot be saved",
        translator=lambda: translator_of(UnregisteredTransformer),
    ),
    train(
        "unregistered translator",
        "UnregisteredTranslator cannot be saved",
        translator=lambda: translator_of(Transformer, UnregisteredTranslator),
    ),
    Refusal("train: file in the way", in_the_way, "file", OSError),
    Refusal("train: damaged record", damaged_record, "run.json is damaged"),
    Refusal(
        "new translator: vocabulary of a tokenizer",
        lambda: new_translator(FEW, tokenizer=WORDS, vocabulary_size=320),
        "own vocabularies",
    ),
    Refusal(
        "new translator: unknown argument",
        lambda: new_translator(FEW, preset="tiny", num_head=2),
        "'num_head'.*'num_heads'",
        TypeError,
    ),
    compiled(
        "rate and warm-up", "=0.1, warmup_steps=9", learning_rate=0.1, warmup_steps=9
    ),
    compiled("other setting", "no argument 'epochs'", TypeError, epochs=3),
    compiled("steps by place", "`config` .*4000", TypeError, 4000),
    compiled(
        "cooldown", "cooldown_epochs=2", ValueError, TrainingConfig(cooldown_epochs=2)
    ),
    *(
        compiled(
            f"optimizer and {name}", f"{name}=0.5 and", optimizer="sgd", **{name: 0.5}
        )
        for name in ("clip_norm", "weight_decay", "learning_rate")
    ),
    exact(
        "data in the place of callbacks", "`callbacks` .*a Batch", TypeError, endless
    ),
    exact("a single callback", "`callbacks` .*a Odd", TypeError, Odd),
    exact("data among callbacks", "`callbacks` .*3 in it", TypeError, [3]),
    exact("no step", "`every` must .*0", every=0),
    exact("endless names", "`allow_changed` .*Ba", TypeError, allow_changed=endless),
    exact("name", "`allow_changed` must .*'data'", allow_changed=["data"]),
    exact(
        "backup",
        "resume a BackupAndRestore",
        callbacks=lambda: [keras.callbacks.BackupAndRestore("x")],
    ),
    exact(
        "checkpoint within epochs",
        "`save_freq` .*save_freq=5",
        callbacks=lambda: [keras.callbacks.ModelCheckpoint("x.keras", save_freq=5)],
    ),
    exact(
        "board within epochs",
        "`update_freq` .*update_freq=1",
        callbacks=lambda: [LogsBatches("x", update_freq="batch")],
    ),
    *(
        Refusal(
            f"state of {type(v).__name__}",
            lambda v=v: pack({"a": [v]}),
            type(v).__name__,
            TypeError,
        )
        for v in ({1}, b"x", range(3), Odd())
    ),
    *(
        Refusal(
            f"optimizer {settings}", partial(transformer_optimizer, 64, **settings), p
        )
        for settings, p in (
            ({"clip_norm": -1}, "`clip_norm` .*-1"),
            ({"weight_decay": -1}, "`weight_decay` .*-1"),
            ({"total_steps": -3}, "`total_steps` .*-3"),
            ({"cooldown_steps": 10}, "`total_steps` .*None"),
            ({"learning_rate": 0.1, "decay_from": 9}, "=0.1, decay_from=9"),
            ({"learning_rate": 0}, "`learning_rate` .*0"),
        )
    ),
    *(
        Refusal(f"schedule {sizes}", partial(TransformerSchedule, *sizes), pattern)
        for sizes, pattern in (
            ((0, 10), "`d_model` .*0"),
            ((10, 0), "`warmup_steps` .*0"),
            ((320, 20, 19), "`decay_from` .* 20.* 19"),
        )
    ),
    *(
        Refusal(f"cooldown {sizes}", partial(Cooldown, 0.1, *sizes), "`cooldown_steps`")
        for sizes in ((100, 0), (100, 101))
    ),
    *(
        Refusal(
            f"smoothing {value}", partial(SmoothedCrossentropy, value), f": {value}"
        )
        for value in (-0.1, 1.0)
    ),
    Refusal("average: none", AverageCheckpoints().weights, "no epoch has ended"),
    Refusal("average: of 0", lambda: AverageCheckpoints(last=0), "`last` must .*0"),
    Refusal(
        "start from a file that is overwritten",
        lambda folder: RunFolder(folder).refuse_start(folder / "last.keras"),
        "last.keras would be overwritten",
    ),
]
