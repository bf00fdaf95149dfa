"""Files of earlier versions go on loading, and go on saying the same.

`data/translator-0.1.0.keras` was written by version 0.1.0, with the logits it gave then
beside it. It is never written again: a version that changes the format adds a file.
"""

from pathlib import Path

import numpy as np
import pytest

from keras_vanilla import Translator

DATA = Path(__file__).parents[1] / "saved_files"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.keras")), ids=lambda p: p.stem)
def test_old_file_says_what_it_said(path):
    then = np.load(path.with_suffix(".npz"))
    translator = Translator.load(path)
    ids = {"source_ids": then["source_ids"], "target_ids": then["target_ids"]}
    np.testing.assert_allclose(translator.model(ids), then["logits"], atol=1e-5)
    assert translator.encode([str(then["text"])]) == [then["text_ids"].tolist()]


def test_old_files_exist():
    assert list(DATA.glob("*.keras"))
