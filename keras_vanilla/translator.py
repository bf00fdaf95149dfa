"""Text in, text out: a tokenizer, a Transformer and a search in one Keras archive."""

import os
import warnings
import zipfile
from pathlib import Path

import keras
import numpy as np

from keras_vanilla.decoding import CompiledSearch, greedy_search
from keras_vanilla.text.lines import some_of
from keras_vanilla.text.tokenizer import Tokenizer
from keras_vanilla.transformer import Transformer

ROWS = 64  # of a batch: enough to fill two cores, few enough to end together


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
        self._search = CompiledSearch(model)
        self.built = True

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def translate(self, texts, max_length=None):
        """Translates each text by greedy search.

        Args:
            texts: list of str.
            max_length: int or None. Longest output in tokens, its end included; None
                means 50 more than the source has.
        Returns:
            List of str, in the order of `texts`. A text without a piece gives "".
        Raises:
            TypeError: if `texts` is one str.
            ValueError: if a text has more tokens than the model takes.
        Warns:
            UserWarning: if translations reached their longest length without an end.
        """
        sources = self.encode(texts)
        results = [""] * len(texts)
        cut = []
        by_length = sorted(range(len(texts)), key=lambda i: len(sources[i]))
        wanted = [i for i in by_length if len(sources[i]) > 1]  # more than an end
        for start in range(0, len(wanted), ROWS):
            rows = wanted[start : start + ROWS]
            ids = self.search([sources[i] for i in rows], max_length)
            for i, text in zip(rows, self.tokenizer.decode(ids), strict=True):
                results[i] = text
            ended = (ids == self.model.end_id).any(axis=1)
            cut += [i + 1 for i, end in zip(rows, ended, strict=True) if not end]
        if cut:
            warnings.warn(
                f"{len(cut)} of {len(texts)} translations reached their longest length "
                f"without an end: texts {some_of(sorted(cut))}",
                stacklevel=2,
            )
        return results

    def encode(self, texts):
        """Source ids of each text, refusing those that the model cannot take."""
        sources = self.tokenizer.encode(texts)
        for number, ids in enumerate(sources, start=1):
            if len(ids) > self.model.max_length:
                raise ValueError(
                    f"Text {number} has {len(ids)} tokens, but the model takes at most "
                    f"{self.model.max_length}: {texts[number - 1][:40]!r}..."
                )
        return sources

    def search(self, sources, max_length=None):
        """Target ids (B, L), an int32 array, of lists of source ids."""
        width = max(map(len, sources))
        width = min(-(-width // 8) * 8, self.model.max_length)  # few shapes to compile
        source_ids = padded(sources, width, self.model.pad_id)
        return self._search(greedy_search, source_ids, max_length=max_length)

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


def padded(rows, width, pad_id):
    """An int32 array (len(rows), width) of lists of ids, `pad_id` after each."""
    ids = np.full((len(rows), width), pad_id, dtype="int32")
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids


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


def first_line(error):
    """What an error says first; Keras and TensorFlow go on for pages."""
    return str(error).strip().split("\n")[0] or type(error).__name__
