"""A training that is killed at a chosen instant; a program for the tests of resuming.

    python killed_training.py FOLDER [plain|whole] [step N | bytes N | replace N]

"plain" is `model.fit` with `ExactResume`, "whole" is `train_translator` with validation
and BLEU. The last two choose the instant of SIGKILL: after N steps, half-way through
the bytes of this process's N-th snapshot, or before that snapshot gets its name. At its
end the program prints what must not depend on any kill.
"""

import hashlib
import io
import json
import os
import signal
import sys
from pathlib import Path

import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from stopping import AfterBatches  # noqa: E402
from word_reversal import dutch, english_sentences  # noqa: E402

from keras_vanilla import Translator, _atomic_write  # noqa: E402
from keras_vanilla.data import ParallelCorpus, batches  # noqa: E402
from keras_vanilla.training import (  # noqa: E402
    AverageCheckpoints,
    ExactResume,
    compile_for_training,
    new_translator,
    train_translator,
)
from keras_vanilla.training.resume import exact_resume, snapshots  # noqa: E402


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_write(number, after_half):
    """Kills this process inside its `number`-th snapshot."""
    written, savez, replace = 0, np.savez, os.replace

    def counted_savez(file, **arrays):
        nonlocal written
        written += 1
        if after_half and written == number:
            whole = io.BytesIO()
            savez(whole, **arrays)
            file.write(whole.getvalue()[: whole.tell() // 2])
            file.flush()
            die()
        savez(file, **arrays)

    def counted_replace(source, target):
        if Path(source).parent.name == "snapshots" and written == number:
            die()
        replace(source, target)

    snapshots.np.savez, _atomic_write.os.replace = counted_savez, counted_replace


def corpus(count, seed):
    sources = english_sentences(count, seed)
    return ParallelCorpus(sources, map(dutch, sources))


def plain(folder, steps_to_live, epochs=3):
    """`fit` in a notebook: 3 epochs of some ten steps, a snapshot every third step."""
    pairs = corpus(200, 0)
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    translator = new_translator(pairs, preset="tiny", vocabulary_size=320, **layers)
    model = translator.model
    train = batches(pairs, translator.tokenizer, tokens_per_batch=512)
    compile_for_training(model, warmup_steps=20)
    folder.mkdir(parents=True, exist_ok=True)
    average = AverageCheckpoints(last=2)
    others = [
        average,
        keras.callbacks.CSVLogger(folder / "history.csv"),
        keras.callbacks.ModelCheckpoint(
            folder / "best.keras", monitor="loss", save_best_only=True
        ),
        AfterBatches(steps_to_live, die),
    ]
    exact = ExactResume(folder / "snapshots", train, others, every=3)
    history = model.fit(
        train,
        epochs=epochs,
        callbacks=[exact],
        shuffle=False,
        verbose=0,
    )
    return {
        "steps": int(model.optimizer.iterations),
        "weights": digest(model.get_weights()),
        "average": digest(average.weights()),
        "best": digest(keras.saving.load_model(folder / "best.keras").get_weights()),
        "history": history.history,
        "epochs": history.epoch,
        "log": (folder / "history.csv").read_text(),
    }


def whole(folder, epochs=40):
    """`train_translator`, of about a minute."""
    exact_resume.SECONDS_BETWEEN = 0.2
    pairs, validation = corpus(600, 0), corpus(20, 1)
    translator = train_translator(
        pairs,
        folder,
        validation,
        preset="tiny",
        vocabulary_size=320,
        dropout=0.1,
        epochs=epochs,
        tokens_per_batch=512,
        warmup_steps=50,
        max_tokens=30,
        average_last=3,
    )
    return {
        "chosen": digest(translator.model.get_weights()),
        "last": digest_of_file(folder / "last.keras"),
        "best": digest_of_file(folder / "best.keras"),
        "results": json.loads((folder / "results.json").read_text()),
        "log": (folder / "history.csv").read_text(),
    }


def digest(arrays):
    whole = b"".join(np.asarray(array).tobytes() for array in arrays)
    return hashlib.sha256(whole).hexdigest()


def digest_of_file(path):
    return digest(Translator.load(path).model.get_weights())


def main(folder, kind="plain", where="step", number="0"):
    number = int(number)
    if where != "step" and number:
        die_in_write(number, after_half=where == "bytes")
    steps_to_live = number if where == "step" else 0
    folder = Path(folder)
    ends = plain(folder, steps_to_live) if kind == "plain" else whole(folder)
    print(json.dumps(ends))


if __name__ == "__main__":
    main(*sys.argv[1:])
