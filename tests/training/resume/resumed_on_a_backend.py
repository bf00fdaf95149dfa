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


# After how many batches, of three epochs of four: in an epoch, at its end, at the last.
# With `use_ema` Keras moves averages into the weights at last.
CRASHES = {False: (4, 6), True: (6, 12)}


def main(folder):
    for use_ema, crashes in CRASHES.items():
        runs = folder / f"ema-{use_ema}"
        expected, history = train(runs / "whole", 1, use_ema=use_ema)
        for crash in crashes:
            run = runs / f"crash-{crash}"
            try:
                train(run, 1, crash, use_ema=use_ema)
                raise AssertionError("The training did not stop.")
            except Crash:
                pass
            for seed in (2, 3):  # the second time there is nothing left to train
                weights, again = train(run, seed, use_ema=use_ema)
                assert again == history, (crash, again, history)
                for one, other in zip(expected, weights, strict=True):
                    np.testing.assert_array_equal(one, other)


main(Path(sys.argv[1]))
