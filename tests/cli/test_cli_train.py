import types

import pytest

from keras_vanilla.cli.train import _train
from keras_vanilla.training.run_folder import RunFolder


class Run:
    """Stands for a training that is already done."""

    config = "its numbers"

    def __init__(self, *arguments, **named):
        pass

    def train(self):
        pass


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_snapshot_is_announced_unless_it_may_be_overwritten(
    tmp_path, monkeypatch, capfd, overwrite
):
    monkeypatch.setattr("keras_vanilla.training.run.TrainingRun", Run)
    given = types.SimpleNamespace(
        corpus=[], validation=None, tokenizer=None, translator=None
    )
    folder = RunFolder(tmp_path, overwrite)
    folder.snapshots.save(4, {})
    folder.results_path.write_text("{}")
    _train(None, folder, given)
    said = "has a snapshot after step 4" in capfd.readouterr().err
    assert said is not overwrite
