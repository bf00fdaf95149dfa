import keras
import numpy as np
import pytest
from micro_batch_worker import batch
from models import make_model
from tiers import in_full

from keras_vanilla.training import SmoothedCrossentropy
from keras_vanilla.training.freezing import frozen

# Every weight that a Transformer can have.
SIZES = {"normalize_first": True, "output_bias": True, "num_decoder_layers": 1}
SEPARATE = {"share_embeddings": False, "target_vocabulary_size": 23}


@pytest.mark.parametrize(
    ("parts", "prefixes"),
    [
        (["encoder", "embeddings"], ("encoder", "source_", "target_")),
        *in_full(
            (["embeddings"], ("source_embedding", "target_embedding")),
            (["encoder"], ("encoder",)),
            (["decoder"], ("decoder", "logits_bias")),
        ),
    ],
    ids=str,
)
def test_only_the_other_parts_are_trained(parts, prefixes):
    model = make_model(**SIZES, **SEPARATE)
    before, flags = model.get_weights(), [w.trainable for w in model.weights]
    with frozen(model, parts):
        loss = SmoothedCrossentropy()
        optimizer = keras.optimizers.Adam(0.1, weight_decay=0.1)
        model.compile(optimizer, loss, run_eagerly=True)
        model.train_on_batch(*batch())
    assert [w.trainable for w in model.weights] == flags
    for weight, old in zip(model.weights, before, strict=True):
        stays = weight.path.startswith(prefixes)
        assert np.array_equal(weight, old) is stays, weight.path


def test_frozen_weights_stay_frozen():
    model = make_model(**SIZES)
    model.encoder_layers[0].trainable = False
    inside = [weight.trainable for weight in model.weights]
    with frozen(model, ["encoder"]):
        assert sum(weight.trainable for weight in model.weights) < sum(inside)
    assert [weight.trainable for weight in model.weights] == inside
