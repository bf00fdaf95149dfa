"""Text in, text out: a tokenizer, a Transformer and a search in one Keras archive."""

import os
import zipfile
from pathlib import Path

import keras

from keras_vanilla._checks import first_line
from keras_vanilla.decoding import CompiledSearch
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer.tokenizer import Tokenizer
from keras_vanilla.translation.alignment import align
from keras_vanilla.translation.batch_translation import (
    WINDOW,
    Search,
    search_sentences,
    warn_unfinished,
)


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Translator(keras.Model):
    """Maps texts to texts.

    A Keras model whose archive holds the Transformer's weights and the SentencePiece
    model, and no optimizer; `keras.saving.load_model` reads it with nothing but
    `import keras_vanilla`, on every backend.

    Args:
        tokenizer: Tokenizer.
        model: Transformer.
    Raises:
        ValueError: if vocabulary sizes or special ids of the two differ.
    Example:
        translator = Translator.load("translator.keras")
        translator.translate(["Good morning."])
    """

    def __init__(self, tokenizer, model, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.tokenizer = tokenizer
        if (
            tokenizer is not None
        ):  # Keras hands it over after the config, see load_assets
            _check_pair(tokenizer, model)
        self._compiled = CompiledSearch(model)
        self.built = True

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def translate(
        self, texts, beam_size=1, length_penalty=0.6, max_length=None, long="refuse"
    ):
        """Translates each text.

        Args:
            texts: list of str.
            beam_size: int. 1 is greedy search.
            length_penalty: float. Of beam search, see `beam_search`.
            max_length: int or None. Longest output in tokens, its end included; None
                means 50 more than the source has.
            long: "refuse" a text with more tokens than the model takes, or "split"
                every text into sentences, which are translated one by one.
        Returns:
            List of str, in the order of `texts`. A text without a piece gives "".
        Raises:
            TypeError: if `texts` is one str.
            ValueError: if a text has more tokens than the model takes, or an argument
                is out of its range.
        Warns:
            UserWarning: if translations reached their longest length without an end.
        """
        stream = self.stream(texts, beam_size, length_penalty, max_length, long)
        found = [hypotheses[0] for hypotheses in stream]
        warn_unfinished([hypothesis.ended for hypothesis in found])
        return [hypothesis.text for hypothesis in found]

    def translate_n_best(
        self, texts, beam_size=4, n_best=4, length_penalty=0.6, max_length=None
    ):
        """The best translations of each text, with their scores.

        Args:
            texts: list of str.
            beam_size: int.
            n_best: int, at most `beam_size`.
            length_penalty: float, see `beam_search`.
            max_length: int or None, as for `translate`.
        Returns:
            For each text a list of (str, float), best first: at most `n_best`, fewer
            where the search found fewer. The score is the log-probability divided by
            the length penalty.
        Raises:
            TypeError, ValueError: as `translate`; also if `n_best` is above
                `beam_size`.
        Warns:
            UserWarning: as `translate`.
        """
        found = list(
            self.stream(texts, beam_size, length_penalty, max_length, n_best=n_best)
        )
        warn_unfinished([hypotheses[0].ended for hypotheses in found])
        return [[(each.text, each.score) for each in found_of] for found_of in found]

    def stream(
        self,
        texts,
        beam_size=1,
        length_penalty=0.6,
        max_length=None,
        long="refuse",
        n_best=None,
        done=None,
    ):
        """Yields a list of hypotheses for each text, in order, while others wait.

        Texts of about equal length are translated together, among some thousands at a
        time. What is wrong with an argument or a text is found before the first.

        Args:
            texts: list of str.
            beam_size: int.
            length_penalty: float.
            max_length: int or None.
            long: "refuse" or "split", as for `translate`.
            n_best: int or None. Hypotheses of each text, with scores; None means one
                without.
            done: function called with the number of texts (or of sentences, of texts
                that are split) of each batch that is done, or None.
        Returns:
            Iterator of lists of `Hypothesis`, best first.
        Raises:
            TypeError, ValueError: as `translate_n_best`.
        """
        if long not in ("refuse", "split"):
            raise ValueError(f"`long` must be 'refuse' or 'split'. Received: {long!r}")
        if long == "split" and n_best is not None:
            raise ValueError(
                "There are no n-best translations of a text that is split."
            )
        search = Search(
            self.model,
            self.tokenizer,
            self._compiled,
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=max_length,
            n_best=n_best,
            done=done,
        )
        if long == "split":
            return search_sentences(search, texts)
        for start in range(0, len(texts), WINDOW):  # lists of ids are large
            self.encode(texts[start : start + WINDOW], first=start + 1)
        return search(texts)

    def encode(self, texts, first=1):
        """Source ids of each text, refusing those that the model cannot take.

        Args:
            texts: list of str.
            first: int. The number of the first text in an error.
        """
        sources = self.tokenizer.encode(texts)
        self._check_lengths(sources, texts, "Text", first)
        return sources

    def search(self, sources, **settings):
        """Target ids (B, L), an int32 array, of one batch of lists of source ids.

        At least one list.

        Args:
            sources: lists of ids, each with its end.
            settings: `beam_size`, `length_penalty` and `max_length`.
        """
        search = Search(self.model, self.tokenizer, self._compiled, **settings)
        self._check_lengths(sources, sources, "Source")
        return search.ids(sources)[0][:, 0]

    def align(self, texts, translations):
        """Which word of each text every word of its translation comes from.

        Args:
            texts: list of str.
            translations: list of str, as many; the model's own or others.
        Returns:
            For each pair a list of (source word, target word), ints that count from 0
            the words between white space, as the tokenizer normalises the text. They
            are read off the cross-attention, see `alignment.align`.
        Raises:
            TypeError: if either is one str.
            ValueError: if the counts differ, or one has more tokens than the model
                takes.
        """
        sources = self.encode(texts)
        targets = self.tokenizer.encode_target(translations)
        self._check_lengths(targets, translations, "Translation")
        if len(texts) != len(translations):
            raise ValueError(
                "`texts` and `translations` must be as many. Received: "
                f"{len(texts)} and {len(translations)}"
            )
        return align(self.model, self.tokenizer, sources, targets)

    def save(self, path, overwrite=True):
        """Writes one Keras archive, in one piece or not at all.

        Args:
            path: path that ends with ".keras".
            overwrite: bool. Replace a file that is there.
        Raises:
            ValueError: if the path does not end with ".keras".
            FileExistsError: if the file is there and may not be replaced.
        """
        path = Path(path)
        if path.suffix != ".keras":
            raise ValueError(f"A translator's file ends with .keras. Received: {path}")
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists already.")
        unfinished = path.with_name(f".{path.stem}.unfinished.keras")
        try:
            uncompiled = self.copy() if self.model.compiled else self
            keras.Model.save(uncompiled, unfinished)  # an optimizer triples the file
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path):
        """Reads a translator from its archive.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it is not a Keras archive, is cut short, or holds another
                model.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        if not zipfile.is_zipfile(path):
            raise ValueError(f"{path} is not a Keras archive, or is cut short.")
        try:
            translator = keras.saving.load_model(path)
        except Exception as error:
            raise ValueError(
                f"{path} cannot be read as a translator: {first_line(error)}"
            ) from error
        if not isinstance(translator, cls):
            raise ValueError(
                f"{path} holds a {type(translator).__name__}, not a Translator."
            )
        return translator

    def copy(self, weights=None):
        """A translator of its own with the same weights, or others, and no optimizer.

        Args:
            weights: list of arrays as `model.set_weights` takes, or None.
        """
        model = type(self.model).from_config(self.model.get_config())
        model.set_weights(self.model.get_weights() if weights is None else weights)
        return type(self)(self.tokenizer, model, name=self.name)

    def _check_lengths(self, rows, texts, name, first=1):
        for number, ids in enumerate(rows, start=first):
            if len(ids) > self.model.max_length:
                raise ValueError(
                    f"{name} {number} has {len(ids)} tokens, but the model takes at "
                    f"most {self.model.max_length}: {texts[number - first][:40]!r}..."
                )

    def save_assets(self, folder):
        tokenizer = self.tokenizer
        Path(folder, "source.model").write_bytes(tokenizer.source_model)
        if tokenizer.target_model != tokenizer.source_model:
            Path(folder, "target.model").write_bytes(tokenizer.target_model)

    def load_assets(self, folder):
        target = Path(folder, "target.model")
        self.tokenizer = Tokenizer(
            Path(folder, "source.model").read_bytes(),
            target.read_bytes() if target.exists() else None,
            **self._special_ids,
        )
        _check_pair(self.tokenizer, self.model)

    def get_config(self):
        special = ("pad_id", "unknown_id", "start_id", "end_id")
        return {
            "model": self.model.get_config(),
            "special_ids": {name: getattr(self.tokenizer, name) for name in special},
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        model = Transformer.from_config(config["model"])
        translator = cls(None, model, name=config["name"])
        translator._special_ids = config["special_ids"]
        return translator


def _check_pair(tokenizer, model):
    for ours, theirs in (
        ("vocabulary_size", "source_vocabulary_size"),
        ("target_vocabulary_size", "target_vocabulary_size"),
        ("pad_id", "pad_id"),
        ("start_id", "start_id"),
        ("end_id", "end_id"),
    ):
        if getattr(tokenizer, ours) != getattr(model, theirs):
            raise ValueError(
                f"The tokenizer and the model must agree. Received: the tokenizer's "
                f"{ours}={getattr(tokenizer, ours)}, the model's "
                f"{theirs}={getattr(model, theirs)}"
            )
