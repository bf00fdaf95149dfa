"""What translators refuse."""

from functools import cache, partial

import keras
import word_reversal
from refusal import Refusal

from keras_vanilla import Transformer, Translator
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.translation import score
from keras_vanilla.translation.encoded_texts import EncodedTexts, encoded_prefixes

COMPLETE = ("translation/encoded_texts.py", "translation/long_texts.py")
METHODS = {
    "fit": "model.fit",
    "compile": "model.compile",
    "train_on_batch": "model.train_on_batch",
    "evaluate": "score",
    "test_on_batch": "score",
    "predict": "translate",
    "predict_on_batch": "translate",
    "export": "export.tflite",
    "quantize": "export.tflite",
}
LONG = "zero " * 100
SEQUENTIAL = keras.Sequential([keras.Input((2,))])


@cache
def loaded():
    return Translator.load(word_reversal.TRAINED)


@cache
def forbidding():
    """The piece of "drie" is never chosen."""
    translator = loaded()
    ids = translator.tokenizer.encode_target(["drie"])[0][:1]
    config = translator.model.get_config() | {"forbidden_ids": ids}
    return Translator(translator.tokenizer, Transformer.from_config(config))


class Unknowing:
    """A tokenizer that knows no character."""

    unknown_id = 1

    def encode_target(self, lines):
        return [[1, 3] for _ in lines]


def unknown_prefix():
    encoded_prefixes(["ж"], 1, Unknowing(), 9, first_number=5)


def translate(texts=("one", "two"), **settings):
    return lambda: loaded().translate(texts, **settings)


def refused(pattern, error=ValueError, texts=("one", "two"), **settings):
    """A translation with settings that are wrong."""
    name = f"{texts!a:.30} {settings!a:.70}"
    return Refusal(name, translate(texts, **settings), pattern, error)


def align(texts, translations):
    loaded().align(texts, translations)


def tokenizer():
    return loaded().tokenizer


def search_of(wrong):
    return lambda: loaded().search([[5, 3], [wrong, 3]])


def method(name):
    return lambda: getattr(loaded(), name)("int8")


def score_of(source, **settings):
    return lambda: score(loaded(), ParallelCorpus([source], ["nul"]), **settings)


def of_model(**settings):
    """A Translator with a tiny model that does not match its tokenizer."""
    size = {"source_vocabulary_size": 324, "num_encoder_layers": 1}
    settings = {**size, "num_decoder_layers": 1, **settings}
    return lambda: Translator(
        loaded().tokenizer, Transformer.from_preset("tiny", **settings)
    )


def saved(model, folder):
    model.save(folder / "x.keras")
    Translator.load(folder / "x.keras")


def exported(folder):
    (folder / "x.tflite").write_bytes(b"\x1c\0\0\0TFL3 and more")
    Translator.load(folder / "x.tflite")


def cut(kept, folder):
    content = word_reversal.TRAINED.read_bytes()
    (folder / "x.keras").write_bytes(content[: int(kept * len(content))])
    Translator.load(folder / "x.keras")


def rounded(folder):
    loaded().save(folder / "x.keras", quantize="int4")


def in_the_way(folder):
    (folder / "x.keras").write_text("mine")
    loaded().save(folder / "x.keras", overwrite=False)


def split(sentences):
    return translate(
        ["one ten, red tree"], on_too_long="split", splitter=lambda text: sentences
    )


WRONG = {  # name: the call, and a pattern of its error
    "few translations": (lambda: align(["one", "two"], ["een"]), "2 texts and 1"),
    "long translation": (lambda: align(["one"], ["nul " * 100]), "Translation 1 .* 60"),
    **{
        f"id {wrong}": (search_of(wrong), f"source id .* Received: {wrong}")
        for wrong in (-1, 324, 5.5, 2**40)
    },
    "all too long": (score_of(LONG), "all 1 sources .* 60"),
    "scored in parts": (score_of("one", on_too_long="cut"), "`on_too_long`.*'cut'"),
    "suffix": (lambda folder: loaded().save(folder / "x.h5"), "x.h5"),
    "rounding": (rounded, "`quantize` must be one of None, 'int8'"),
    **{
        f"cut at {kept}": (partial(cut, kept), "x.keras .*cut short")
        for kept in (0, 0.01, 0.5, 0.99)
    },
    "Sequential file": (
        partial(saved, SEQUENTIAL),
        "x.keras holds a Sequential",
    ),
    "bare Transformer": (
        lambda folder: saved(loaded().model, folder),
        r"x.keras holds a Transformer.*no tokenizer.*Translator\(tokenizer, ",
    ),
    "exported": (exported, "x.tflite is an exported .tflite file. Expected"),
    "preset": (lambda: Translator.from_preset("en-de"), "'en-fr'.*'en-de'"),
    "vocabulary": (of_model(source_vocabulary_size=11), "vocabulary_size=.*=11"),
    "special id": (of_model(end_id=7), "end_id=3.*end_id=7"),
}
TYPES = {
    "loaded model": (lambda: Translator.load(loaded().model), "`path`.*Transformer"),
    "swapped": (lambda: Translator(loaded().model, tokenizer()), "after the tokenizer"),
    "twice": (lambda: Translator(tokenizer(), loaded()), "`model`.*Translator"),
    "Sequential": (lambda: Translator(tokenizer(), keras.Sequential()), "Sequential"),
    "about": (lambda: loaded().replace(about="de"), "`about`.*'de'"),
}
FILES = {
    "x.keras": (in_the_way, FileExistsError),
    "nowhere.keras": (
        lambda f: Translator.load(f / "nowhere.keras"),
        FileNotFoundError,
    ),
    r"'en-fr' \(Translator.from_preset\)": (
        lambda: Translator.load("en-fr"),
        FileNotFoundError,
    ),
}
ROWS = [
    # texts
    refused("Text 2 has .* 60: 'zero", texts=["one", LONG]),
    *(
        refused(pattern, error, texts, on_too_long=how)
        for how in ("refuse", "split")
        for pattern, error, texts in (
            (r"`texts`.*'one two'; give \['one two'\]", TypeError, "one two"),
            ("`texts`.*5", TypeError, 5),
            ("^Text 2 must be str. Received: int", TypeError, ["one", 4]),
            ("^Text 3 holds half", ValueError, ["One.", "", "half \ud800"]),
        )
    ),
    # settings
    refused("`on_too_long`.*'cut'", on_too_long="cut"),
    refused("`max_length`.*60. Received: 61", max_length=61),
    refused("`n_best`.*'split'", n_best=2, beam_size=2, on_too_long="split"),
    refused("`target_prefix`.*'split'", target_prefix=["a", ""], on_too_long="split"),
    Refusal("splitter", translate(splitter=str.split), "`splitter`.*'refuse'"),
    *(
        Refusal(f"splitter: {given}", split(given), "`splitter`.*Received")
        for given in (
            ["one ten,"],
            ["red tree"],
            ["one,", "red tree"],
            ["red tree", "one ten,"],
        )
    ),
    # prefixes and terms
    refused("`target_prefix`.*'drie'", TypeError, target_prefix="drie"),
    refused("1 for 2 texts", target_prefix=["drie"]),
    refused("Target prefix 1 .*int", TypeError, target_prefix=[3, "drie"]),
    refused("Target prefix 2 holds", target_prefix=["drie", "\ud800"]),
    refused("Target prefix 2 has .* 8", target_prefix=["", "twee " * 9], max_length=8),
    Refusal("unknown character", unknown_prefix, "Target prefix 5 .*'ж'"),
    Refusal(
        "forbidden prefix",
        lambda: forbidding().translate(["one", "two"], target_prefix=["", "drie"]),
        "Target prefix 2 .*`forbidden_ids`.*'drie'",
    ),
    refused("`terms`.*'a'", TypeError, terms=["a"]),
    refused("`terms`.* 1 must be str.*int", TypeError, terms={"a": 3}),
    refused("`terms`.*' ': 'b'", terms={" ": "b"}),
    refused("`terms`.* 1 holds half", terms={"a": "\ud800"}),
    refused("`copy`.*'url'", TypeError, copy="url"),
    refused("`copy`.*'urls'", copy=["urls"]),
    *(
        refused(pattern, beam_size=2, early_stopping=value, **given)
        for value in (False, "never")
        for pattern in (f"^`terms` and `copy`.*early_stopping={value!r}$",)
        for given in ({"terms": {"six": "b"}}, {"copy": ["url"]})  # in no text
    ),
    Refusal("no text 0", lambda: EncodedTexts([], None)[0], "^0$", IndexError),
    *(
        Refusal(name, method(name), f"no `{name}`.*{instead}", NotImplementedError)
        for name, instead in METHODS.items()
    ),
    *(Refusal(name, call, pattern) for name, (call, pattern) in WRONG.items()),
    *(Refusal(n, call, pattern, TypeError) for n, (call, pattern) in TYPES.items()),
    *(Refusal(file, call, file, error) for file, (call, error) in FILES.items()),
]
