"""A tokenizer, a Transformer and a search in one Keras archive."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import keras
import numpy as np

from keras_vanilla._about import About
from keras_vanilla._atomic_write import atomic_path, refuse_existing
from keras_vanilla._checks import check_choice, check_ids, first_line
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla._lazy_names import lazy_names
from keras_vanilla._progress import Progress
from keras_vanilla._readable import check_finite_weights
from keras_vanilla._types import PathLike
from keras_vanilla.decoding import CompiledSearch, DecodingConfig
from keras_vanilla.decoding.config import SEARCH_OPTIONS
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.pretrained import pretrained_file
from keras_vanilla.tokenizer import Tokenizer, TokenizerProtocol
from keras_vanilla.tokenizer.protocol import check_tokenizer
from keras_vanilla.translation.alignment import align
from keras_vanilla.translation.archive import check_archive, rewrite_archive
from keras_vanilla.translation.batch_translation import (
    BatchTranslator,
    Hypothesis,
    warn_unfinished,
)
from keras_vanilla.translation.encoded_texts import (
    EncodedTexts,
    check_lengths,
    encoded_prefixes,
)
from keras_vanilla.translation.long_texts import stream_sentences
from keras_vanilla.translation.piece_texts import loop_guard
from keras_vanilla.translation.required_terms import RequiredTerms, warn_unmet
from keras_vanilla.translation.saved_classes import (
    TOKENIZER,
    TRANSFORMER,
    class_name,
    class_named,
    tokenizer_config,
)

# `interop` imports this module, so its function is imported when it is called.
_of_interop = lazy_names("keras_vanilla.interop", {"from_hub": "hub"})


def _refusal(method, instead):
    def refuse(self, *args, **kwargs) -> NoReturn:
        raise NotImplementedError(
            f"A Translator has no `{method}`: it maps texts to texts and is a Keras "
            f"model for saving and loading only. Use {instead}."
        )

    refuse.__name__ = method
    refuse.__doc__ = f"Not available: use {instead}."
    return refuse


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Translator(keras.Model):
    """Translates texts with a tokenizer and a Transformer.

    This is a Keras model, so that one archive holds the Transformer's weights and the
    SentencePiece model, without an optimizer. After `import keras_vanilla`,
    `keras.saving.load_model` reads it on every backend. Keras's methods for training,
    evaluation and export raise `NotImplementedError` and name the function to use
    instead. The constructor of a subclass must take the same arguments.

    Args:
        tokenizer: Tokenizer, or any other `TokenizerProtocol`.
        model: Transformer.
        about: About or None. Name, languages and examples of the translator.
    Attributes:
        about: About.
    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if vocabulary sizes or special ids of tokenizer and model differ.
    Example:
        translator = Translator.load("translator.keras")
        translator.translate(["Good morning."])
    """

    def __init__(
        self,
        tokenizer: TokenizerProtocol,
        model: Transformer,
        about: About | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.model = model
        self.tokenizer = tokenizer
        if not hasattr(model, "source_vocabulary_size"):
            raise TypeError(
                "`model` must be a Transformer, after the tokenizer: "
                f"Translator(tokenizer, model). Received: a {type(model).__name__}"
            )
        if tokenizer is not None:  # otherwise `load_assets` adds it from a file
            check_tokenizer(tokenizer)
            _check_pair(tokenizer, model)
        if not isinstance(about, About | None):
            raise TypeError(f"`about` must be an About. Received: {about!r}")
        self.about = about or About()
        self._compiled = CompiledSearch(model)
        self.built = True

    fit = _refusal("fit", "`translator.model.fit`")
    compile = _refusal("compile", "`translator.model.compile`")
    train_on_batch = _refusal("train_on_batch", "`translator.model.train_on_batch`")
    evaluate = _refusal("evaluate", "keras_vanilla.translation.score")
    test_on_batch = _refusal("test_on_batch", "keras_vanilla.translation.score")
    predict = _refusal("predict", "`translator.translate`")
    predict_on_batch = _refusal("predict_on_batch", "`translator.translate`")
    export = _refusal("export", "keras_vanilla.export.tflite or .saved_model")
    quantize = _refusal("quantize", "keras_vanilla.export.tflite(quantize='int8')")

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def translate(
        self,
        texts: Sequence[str],
        config: DecodingConfig | None = None,
        *,
        on_too_long: str = "refuse",
        target_prefix: Sequence[str] | None = None,
        terms: Mapping[str, str] | None = None,
        copy: Sequence[str] = (),
        splitter: Callable[[str], Sequence[str]] | None = None,
        **settings: Any,
    ) -> list[str]:
        """Translates each text.

        Args:
            texts: list of str.
            config: DecodingConfig, or None for greedy search.
            on_too_long: "refuse" texts that have too many tokens for the model, or
                "split" every text into sentences, which are translated one by one.
            target_prefix: list of str or None. The beginning of each translation,
                preferably whole words; "" means no prefix.
            terms: dict of str or None. Maps source terms to translations. If a text
                has such a term, its translation contains the given translation as
                often, see `RequiredTerms`. This works best with several beams, and not
                with `early_stopping`.
            copy: list of str. Kinds of text that are copied into the translations:
                "url", "email", "tag" and "number".
            splitter: function that maps a text to its sentences, for
                on_too_long="split", for example from a library for the language; None
                means the rules of `keras_vanilla.data.sentences`.
            settings: fields of `config`, such as `beam_size`.
        Returns:
            List of str, in the order of `texts`. A text without pieces gives "", unless
            it has a prefix.
        Raises:
            TypeError: if an argument has the wrong type, or a setting is unknown.
            ValueError: if a text has too many tokens for the model, an argument is out
                of range, a prefix is invalid, see `encoded_prefixes`, or a translation
                is empty or without an end because model weights are NaN or infinite.
        Warns:
            UserWarning: if translations reached their longest length without an end, or
                lack a term because the model cannot write its characters or there was
                no room. `stream` shows which.
        Example:
            translator.translate(["Good morning."], beam_size=4)
        """
        stream = self.stream(
            texts,
            config,
            on_too_long=on_too_long,
            target_prefix=target_prefix,
            terms=terms,
            copy=copy,
            splitter=splitter,
            **settings,
        )
        best = [hypotheses[0] for hypotheses in stream]
        warn_unfinished([hypothesis.ended for hypothesis in best])
        warn_unmet([hypothesis.unmet for hypothesis in best])
        return [hypothesis.text for hypothesis in best]

    def translate_n_best(
        self,
        texts: Sequence[str],
        config: DecodingConfig | None = None,
        **settings: Any,
    ) -> list[list[tuple[str, float]]]:
        """Returns the best translations of each text, with scores.

        Args:
            texts: list of str.
            config: DecodingConfig, or None for one with 4 beams. `n_best` defaults to
                `beam_size`.
            settings: fields of `config`, and other arguments of `translate`.
        Returns:
            For each text, a list of (str, float), best first: at most `n_best`, fewer
            if the search found fewer. The score is the log-probability divided by the
            length normalization.
        Raises:
            TypeError, ValueError: same as `translate`.
        Warns:
            UserWarning: same as `translate`.
        """
        search = {n: settings.pop(n) for n in SEARCH_OPTIONS if n in settings}
        config = DecodingConfig(beam_size=4) if config is None else config
        config = DecodingConfig.of(config, **search)
        config = DecodingConfig.of(config, n_best=config.n_best or config.beam_size)
        n_best_lists = list(self.stream(texts, config, **settings))
        warn_unfinished([hypotheses[0].ended for hypotheses in n_best_lists])
        warn_unmet([hypotheses[0].unmet for hypotheses in n_best_lists])
        return [
            [(hypothesis.text, hypothesis.score) for hypothesis in hypotheses]
            for hypotheses in n_best_lists
        ]

    def stream(
        self,
        texts: Sequence[str] | EncodedTexts,
        config: DecodingConfig | None = None,
        *,
        on_too_long: str = "refuse",
        target_prefix: Sequence[str] | None = None,
        terms: Mapping[str, str] | None = None,
        copy: Sequence[str] = (),
        splitter: Callable[[str], Sequence[str]] | None = None,
        progress: Progress | None = None,
        first_number: int = 1,
        **settings: Any,
    ) -> Iterator[list[Hypothesis]]:
        """Yields the hypotheses of each text in order, as soon as they are ready.

        Texts are sorted by length in groups of a few thousand. All arguments are
        checked, and all texts tokenised, before the first batch.

        Args:
            texts: list of str, or `EncodedTexts` unless they are split.
            config: DecodingConfig, or None for greedy search. Without `n_best`, each
                text has one hypothesis.
            on_too_long: "refuse" or "split", as for `translate`.
            target_prefix: list of str or None, as for `translate`.
            terms: dict of str or None, as for `translate`; each `Hypothesis` lists
                missing translations in `unmet`.
            copy: list of str, as for `translate`.
            splitter: function or None, as for `translate`.
            progress: `Progress` that counts finished texts (or sentences, if texts are
                split), or None.
            first_number: int. The number of the first text, for errors and warnings.
            settings: fields of `config`.
        Returns:
            Iterator of lists of `Hypothesis`, best first.
        Raises:
            TypeError, ValueError: same as `translate`.
        """
        config = DecodingConfig.of(config, **settings)
        check_choice("on_too_long", on_too_long, ("refuse", "split"))
        of_whole_texts = {"n_best": config.n_best, "target_prefix": target_prefix}
        for name, value in of_whole_texts.items():
            if on_too_long == "split" and value is not None:
                raise ValueError(
                    f"`{name}` cannot be combined with on_too_long='split', which "
                    "translates the sentences of a text one by one."
                )
        if splitter is not None and on_too_long != "split":
            raise ValueError(
                "`splitter` is for on_too_long='split'. Received: "
                f"on_too_long={on_too_long!r}"
            )
        required = None
        if terms or copy:
            if config.early_stopping is not None:
                raise ValueError(
                    "`terms` and `copy` cannot be combined with `early_stopping`. "
                    f"Received: early_stopping={config.early_stopping!r}"
                )
            required = RequiredTerms(self.tokenizer, self.model, terms, copy)
        translator = self._batch_translator(config, progress, required)
        if on_too_long == "split":
            return stream_sentences(translator, texts, first_number, splitter)
        remedy = " With on_too_long='split', its sentences are translated one by one."
        texts = self._encoded(texts, first_number, remedy)
        if target_prefix is None:
            return translator.stream(texts.texts, texts)
        prefixes = encoded_prefixes(
            target_prefix,
            len(texts),
            self.tokenizer,
            translator.longest_output,
            self.model.forbidden_ids,
            first_number,
        )
        return translator.stream(texts.texts, texts, prefixes)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes texts as source ids; refuses texts that are too long for the model.

        Args:
            texts: list of str.
        Raises:
            TypeError: if `texts` is one str.
            ValueError: if a text has too many tokens for the model.
        """
        return [ids.tolist() for ids in self._encoded(texts)]

    def search(
        self,
        sources: Sequence[Sequence[int]],
        config: DecodingConfig | None = None,
        **settings: Any,
    ) -> np.ndarray:
        """Searches one batch of source ids; returns target ids, an int32 array (B, L).

        Args:
            sources: lists of ids, each with its end; at least one.
            config: DecodingConfig, or None for greedy search.
            settings: fields of `config`.
        Raises:
            TypeError: if a setting is unknown.
            ValueError: if a source has too many tokens for the model or an id outside
                the vocabulary, or `max_length` is above the model's.
        """
        translator = self._batch_translator(DecodingConfig.of(config, **settings))
        lengths = [len(ids) for ids in sources]
        check_lengths("Source", lengths, self.model.max_length, sources)
        for ids in sources:
            check_ids("source id", np.asarray(ids), self.model.source_vocabulary_size)
        return translator.search_batch(sources)[0][:, 0]

    def align(
        self, texts: Sequence[str], translations: Sequence[str]
    ) -> list[list[tuple[int, int]]]:
        """Links each word of a translation to a word of its text.

        Args:
            texts: list of str.
            translations: list of str, one for each text, by this model or any other.
        Returns:
            For each pair, a list of (source word, target word): positions, from 0, of
            words separated by white space in the normalised text. They are computed
            from the cross-attention, see `alignment.align`.
        Raises:
            TypeError: if `texts` or `translations` is one str.
            ValueError: if their numbers differ, or a text or translation has too many
                tokens for the model.
        """
        sources = self.encode(texts)
        targets = self.tokenizer.encode_target(translations)
        lengths, longest = [len(ids) for ids in targets], self.model.max_length
        check_lengths("Translation", lengths, longest, translations)
        if len(texts) != len(translations):
            raise ValueError(
                "There must be one translation for each text. Received: "
                f"{len(texts)} texts and {len(translations)} translations"
            )
        return align(self.model, self.tokenizer, sources, targets)

    def _encoded(self, texts, first_number=1, remedy=""):
        if not isinstance(texts, EncodedTexts):
            texts = EncodedTexts(texts, self.tokenizer.encode, first_number)
        longest = self.model.max_length
        check_lengths("Text", texts.lengths, longest, texts.texts, first_number, remedy)
        return texts

    @functools.cached_property
    def _loop_guard(self):
        return loop_guard(self.tokenizer)

    def _batch_translator(self, config, progress=None, required=None):
        config = config.of_vocabulary(lambda: self._loop_guard)
        return BatchTranslator(
            self.model, self.tokenizer, self._compiled, config, progress, required
        )

    def save(
        self, path: PathLike, overwrite: bool = True, quantize: str | None = None
    ) -> None:
        """Saves the translator atomically in one Keras archive.

        The bytes do not depend on the time.

        Args:
            path: path that ends with ".keras".
            overwrite: bool. Replace an existing file.
            quantize: "int8" rounds matrices to 8 bits, which reduces the file to about
                a fifth of its size; None keeps float32. Both are loaded the same way.
        Raises:
            ValueError: if the path does not end with ".keras", `quantize` is unknown,
                or the class of the model, the tokenizer or the translator is not
                registered with Keras.
            FileExistsError: if the file exists and `overwrite` is False.
        """
        path = Path(path)
        if path.suffix != ".keras":
            raise ValueError(f"A translator's file ends with .keras. Received: {path}")
        check_choice("quantize", quantize, (None, "int8"))
        if not overwrite:
            refuse_existing(path)
        class_name(self)  # refused before anything is written
        uncompiled = self.copy() if self.model.compiled else self
        with atomic_path(path, overwrite) as temporary:
            keras.Model.save(uncompiled, temporary)  # an optimizer triples the file
            rewrite_archive(temporary, rounds=quantize is not None)

    @classmethod
    def load(cls, path: PathLike) -> "Translator":
        """Reads a translator from its archive.

        Args:
            path: path, or "hub:OWNER/NAME" or "hub:OWNER/NAME@REVISION" for a model of
                the Hugging Face hub, see `from_hub`.
        Raises:
            ImportError, OSError: same as `from_hub`.
            TypeError: if a model is given instead of a path.
            FileNotFoundError: if the file does not exist.
            ValueError: if the file is not a Keras archive, is truncated, unpacks to far
                more than its size, holds another model or no tokenizer, or a weight is
                NaN or infinite.
        """
        if isinstance(path, keras.Model):
            raise TypeError(
                f"`path` must be a path. Received: a {type(path).__name__}; a model "
                "that is loaded becomes one by Translator(tokenizer, model)"
            )
        if is_hub_reference(path):
            return cls.from_hub(str(path))
        path = Path(path)
        check_archive(path)
        try:
            translator = keras.saving.load_model(path)
            check_finite_weights(translator)
        except Exception as error:
            raise ValueError(
                f"{path} cannot be read as a translator: {first_line(error)}"
            ) from error
        if not isinstance(translator, cls):
            raise ValueError(
                f"{path} holds a {type(translator).__name__}, not a Translator"
                f"{_remedy(translator)}."
            )
        if translator.tokenizer is None:
            raise ValueError(
                f"{path} is damaged: it has no tokenizer, assets/source.model."
            )
        return translator

    @classmethod
    def from_preset(cls, preset: str) -> "Translator":
        """Loads a trained translator that is installed with the package.

        Args:
            preset: str. "en-fr" translates short English sentences to French; its model
                card is `keras_vanilla/pretrained/en-fr/README.md`.
        Raises:
            ValueError: if there is no translator with this name.
        Example:
            translator = Translator.from_preset("en-fr")
            translator.translate(["Where did you buy this old book?"])
        """
        return cls.load(pretrained_file(preset))

    @classmethod
    def from_hub(cls, name: str) -> "Translator":
        """Loads a Marian model, such as OPUS-MT, from the Hugging Face hub.

        Args:
            name: str. "OWNER/NAME", or "OWNER/NAME@REVISION" with a branch, a tag or a
                commit.
        Raises:
            ImportError, OSError, ValueError: same as `keras_vanilla.interop.from_hub`.
        Example:
            translator = Translator.from_hub("Helsinki-NLP/opus-mt-de-en")
            translator.translate(["Guten Morgen."])
        """
        model = _of_interop("from_hub")(name)
        return cls(model.tokenizer, model.model, model.about)

    def copy(self, weights: list | None = None) -> "Translator":
        """A new translator with the same or given weights, without an optimizer.

        Args:
            weights: list of arrays as for `model.set_weights`, or None.
        """
        return self.replace(model=self.model.copy(weights))

    def replace(
        self,
        *,
        tokenizer: TokenizerProtocol | None = None,
        model: Transformer | None = None,
        about: About | None = None,
    ) -> "Translator":
        """Returns a new translator in which the given parts are replaced.

        Args:
            tokenizer: TokenizerProtocol, or None for the tokenizer of this translator.
            model: Transformer, or None, with which both translators share one model.
            about: About or None.
        Returns:
            Translator; this one is not changed.
        Raises:
            TypeError, ValueError: same as the constructor.
        Example:
            translator.replace(about=About(name="Captions", source_language="de"))
        """
        return type(self)(
            self.tokenizer if tokenizer is None else tokenizer,
            self.model if model is None else model,
            name=self.name,
            about=self.about if about is None else about,
        )

    def in_float32(self) -> "Translator":
        """This translator, or a copy in float32 without LoRA or fake quantisation.

        Raises:
            ValueError: if a weight is NaN or infinite.
        """
        check_finite_weights(self.model)
        rounds = self.model.fake_quantization is not None
        is_float32 = self.model.compute_dtype == "float32" and not rounds
        if self.model.is_plain and is_float32:
            return self
        return self.replace(model=self.model.copy(dtype="float32"))

    def save_assets(self, folder):
        tokenizer = self.tokenizer
        if not isinstance(tokenizer, Tokenizer):
            return  # the tokenizer is in the configuration
        Path(folder, "source.model").write_bytes(tokenizer.source_model)
        if tokenizer.target_model != tokenizer.source_model:
            Path(folder, "target.model").write_bytes(tokenizer.target_model)

    def load_assets(self, folder):
        if self.tokenizer is not None:
            return
        target = Path(folder, "target.model")
        self.tokenizer = self._tokenizer_class(
            Path(folder, "source.model").read_bytes(),
            target.read_bytes() if target.exists() else None,
            **self._special_ids,
        )
        _check_pair(self.tokenizer, self.model)

    def get_config(self):
        return {
            "model": self.model.get_config(),
            "model_class": class_name(self.model),
            **tokenizer_config(self.tokenizer),
            "about": self.about.stated(),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        of_tokenizer = "tokenizer" if "tokenizer" in config else "special_ids"
        for name in ("model", of_tokenizer, "name"):
            if name not in config:
                raise ValueError(f"The configuration of a Translator has no {name!r}.")
        model_class = class_named(config.get("model_class", TRANSFORMER))
        model = model_class.from_config(config["model"])
        about = About(**config.get("about", {}))  # missing in files of 0.6.0
        arguments = {"name": config["name"], "about": about}
        if "tokenizer" in config:
            tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
            return cls(tokenizer, model, **arguments)
        translator = cls(None, model, **arguments)
        translator._tokenizer_class = class_named(
            config.get("tokenizer_class", TOKENIZER)
        )
        translator._special_ids = config["special_ids"]
        return translator


def _remedy(model):
    """The end of an error: how to use a model that was saved without a tokenizer."""
    if not hasattr(model, "source_vocabulary_size"):
        return ""
    return (
        ", which has no tokenizer: load it with keras.saving.load_model, then make "
        "Translator(tokenizer, model) with the tokenizer that it was trained with"
    )


def _check_pair(tokenizer, model):
    for name, theirs in (
        ("vocabulary_size", "source_vocabulary_size"),
        *((n, n) for n in ("target_vocabulary_size", "pad_id", "start_id", "end_id")),
    ):
        values = getattr(tokenizer, name), getattr(model, theirs)
        if values[0] != values[1]:
            raise ValueError(
                "The tokenizer and the model must agree. Received: the tokenizer's "
                f"{name}={values[0]}, the model's {theirs}={values[1]}"
            )
