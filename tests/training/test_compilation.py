import keras
import pytest

from keras_vanilla import Transformer
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import compile_for_training, train_translator


@pytest.fixture(scope="module")
def model():
    return Transformer.from_preset("tiny", source_vocabulary_size=7)


def test_the_default_optimizer_is_plain_adam(model):
    compile_for_training(model)
    optimizer = model.optimizer
    assert type(optimizer) is keras.optimizers.Adam
    assert (optimizer.weight_decay, optimizer.global_clipnorm) == (None, None)


def test_clipping_and_weight_decay_reach_the_optimizer(model):
    compile_for_training(model, clip_norm=0.5, weight_decay=0.01)
    optimizer = model.optimizer
    assert (optimizer.weight_decay, optimizer.global_clipnorm) == (0.01, 0.5)


@pytest.mark.parametrize("settings", [{"clip_norm": 0.5}, {"weight_decay": 0.01}])
def test_numbers_of_adam_beside_another_optimizer_are_refused(
    model, settings, tmp_path
):
    ((name, value),) = settings.items()
    optimizer, corpus = keras.optimizers.SGD(), ParallelCorpus(["a"], ["b"])
    with pytest.raises(ValueError, match=f"its own clipping .*: .*{name}={value}"):
        compile_for_training(model, optimizer=optimizer, **settings)
    with pytest.raises(ValueError, match=f"its own clipping .*: .*{name}={value}"):
        train_translator(corpus, tmp_path / "out", optimizer=optimizer, **settings)
    assert not (tmp_path / "out").exists()
