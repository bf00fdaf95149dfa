"""Trains, saves, loads and exports once, with the versions that are installed.

`.ci/run` starts it where Keras and TensorFlow are the oldest that setup.cfg allows:
FOLDER, which does not exist yet.
"""

import os
import sys
from importlib import metadata
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import word_reversal  # noqa: E402

import keras_vanilla as kv  # noqa: E402
from keras_vanilla.data import ParallelCorpus  # noqa: E402
from keras_vanilla.layers import (  # noqa: E402
    EncoderLayer,
    PositionalEncoding,
    TokenEmbedding,
)
from keras_vanilla.training import train_translator  # noqa: E402


def corpus(count, seed):
    sources = word_reversal.english_sentences(count, seed, lengths=range(1, 4))
    return ParallelCorpus(sources, [word_reversal.dutch(each) for each in sources])


def layers_are_saved_and_loaded(folder):
    ids = keras.Input((None,), dtype="int32")
    x = PositionalEncoding()(TokenEmbedding(vocabulary_size=11, d_model=8)(ids))
    x = EncoderLayer(num_heads=2, d_ff=12)(x)
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(x))
    model.save(folder / "layers.keras")
    rows = np.array([[5, 7, 3, 0], [2, 9, 4, 10]])
    loaded = keras.saving.load_model(folder / "layers.keras")
    np.testing.assert_allclose(loaded.predict(rows), model.predict(rows), atol=1e-6)


def trained(folder):
    """A translator of two epochs, of which the second is resumed and in two parts."""
    settings = {"preset": "tiny", "vocabulary_size": 300, "micro_batches": 2}
    pairs, validation = corpus(600, seed=0), corpus(20, seed=1)

    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    try:
        train_translator(
            pairs, folder / "run", validation, epochs=2, callbacks=[Stop()], **settings
        )
    except KeyboardInterrupt:
        pass

    class Go(Stop):
        def on_epoch_begin(self, epoch, logs=None):
            assert epoch == 1, "the first epoch is trained again"

    Go.__name__ = Stop.__name__
    return train_translator(
        pairs, folder / "run", validation, epochs=2, callbacks=[Go()], **settings
    )


def main(folder):
    folder.mkdir()
    layers_are_saved_and_loaded(folder)
    translator = trained(folder)
    texts = ["one two", "red house"]
    before = translator.translate(texts, max_length=20)
    loaded = keras.saving.load_model(folder / "run" / "translator.keras")
    assert loaded.translate(texts, max_length=20) == before
    # Two epochs are too few to end a sentence: no check on made-up ones.
    kv.export.tflite(loaded, folder / "x.tflite", max_length=20, check="structure")
    kv.export.saved_model(loaded, folder / "x")
    for name in ("x.tflite", "x"):
        report = kv.export.verify(loaded, folder / name, texts)
        assert not report.faults and not report.far, report
    packages = ("tensorflow", "numpy", "sentencepiece", "ai-edge-litert", "protobuf")
    versions = [f"{name} {metadata.version(name)}" for name in packages]
    print(f"Keras {keras.__version__}, {', '.join(versions)}: all works")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
