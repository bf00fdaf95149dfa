"""BLEU after each epoch, and the progress a person watches."""

import sys
import time

import keras

from keras_vanilla.translation.evaluation import score
from keras_vanilla.translation.translator import Translator


class TranslationScore(keras.callbacks.Callback):
    """Translates a corpus after each epoch and logs its BLEU as `val_bleu`.

    Greedy search, sacreBLEU's default protocol. Put it before callbacks that read
    `val_bleu`.

    Args:
        corpus: ParallelCorpus to translate.
        tokenizer: Tokenizer of the model that is trained.
    """

    def __init__(self, corpus, tokenizer):
        super().__init__()
        self.corpus = corpus
        self.tokenizer = tokenizer

    def on_train_begin(self, logs=None):
        self._translator = Translator(self.tokenizer, self.model)

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = score(self._translator, self.corpus)["bleu"]


class Progress(keras.callbacks.Callback):
    """One line on standard error: loss, accuracy, tokens a second, time left.

    On a terminal the line is drawn again twice a second; elsewhere only an epoch's last
    one is written.

    Args:
        tokens_per_epoch: int. Real target tokens of one epoch.
        stream: a text stream; None means standard error.
    """

    def __init__(self, tokens_per_epoch, stream=None):
        super().__init__()
        self.tokens_per_epoch = tokens_per_epoch
        self._stream = stream or sys.stderr
        self._drawn = 0.0

    def on_train_begin(self, logs=None):
        self._training_since = time.monotonic()
        self._done = 0

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._epoch_since, self._done_before = time.monotonic(), self._done

    def on_train_batch_end(self, batch, logs=None):
        self._done += 1
        now = time.monotonic()
        if self._stream.isatty() and now - self._drawn > 0.5:
            self._drawn = now
            self._stream.write("\r" + self._line(batch + 1, logs) + "\x1b[K")
            self._stream.flush()

    def on_epoch_end(self, epoch, logs=None):
        start = "\r\x1b[K" if self._stream.isatty() else ""
        line = self._line(self.params["steps"], logs)
        checked = [
            f"{label} {logs[name]:.{digits}f}"
            for name, label, digits in (
                ("val_token_crossentropy", "val loss", 3),
                ("val_token_accuracy", "val accuracy", 3),
                ("val_bleu", "val BLEU", 1),
            )
            if name in logs
        ]
        self._stream.write(start + "  ".join([line, *checked]) + "\n")
        self._stream.flush()

    def _line(self, batch, logs):
        epochs, steps = self.params["epochs"], self.params["steps"]
        now = time.monotonic()
        trained = self._done - self._done_before  # fewer than `batch` after a restart
        tokens = self.tokens_per_epoch * trained / steps / (now - self._epoch_since)
        to_do = (epochs - self._epoch) * steps - batch
        # None is done when a killed run had only the end of its epoch before it.
        left = to_do * (now - self._training_since) / max(1, self._done)
        return (
            f"epoch {self._epoch + 1}/{epochs}  {_bar(batch / steps)} {batch}/{steps}"
            f"  loss {logs['token_crossentropy']:.3f}"
            f"  accuracy {logs['token_accuracy']:.3f}"
            f"  {tokens:,.0f} tokens/s"
            f"  {int(left // 60)}:{int(left % 60):02d} left"
        )


def _bar(share, width=20):
    full = int(share * width)
    return "[" + "=" * full + " " * (width - full) + "]"
