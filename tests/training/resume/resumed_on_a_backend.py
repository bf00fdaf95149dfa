"""A small training that is stopped and resumed on Keras's backend: FOLDER."""

import sys
from pathlib import Path

import numpy as np
from small_fit import compiled, fit, validation
from stopping import Crash


def train(folder, seed, crash=0, **settings):
    model = compiled(seed=seed, **settings)
    history = fit(model, folder, crash=crash, epochs=3, validation_data=validation())
    return model.get_weights(), history.history


def main(folder):
    # Keras moves averages into the weights at the end of each of its trainings.
    expected, history = train(folder / "whole", 1, use_ema=True)
    # Batches, of three epochs of four: at an epoch's end, in one, at the last.
    for crash in (4, 6, 12):
        run = folder / f"crash-{crash}"
        try:
            train(run, 1, crash, use_ema=True)
            raise AssertionError("The training did not stop.")
        except Crash:
            pass
        # The second time there is nothing left to train.
        for seed in (2, 3) if crash == 6 else (2,):
            weights, again = train(run, seed, use_ema=True)
            assert again == history, (crash, again, history)
            for one, other in zip(expected, weights, strict=True):
                np.testing.assert_array_equal(one, other)


main(Path(sys.argv[1]))
