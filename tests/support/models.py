"""Small models whose every dimension is another number, and ids to feed them."""

import numpy as np
from checks import randomize

from keras_vanilla.models.transformer import Transformer

SIZES = {
    "source_vocabulary_size": 19,
    "d_model": 10,
    "num_heads": 5,
    "d_ff": 7,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "dropout": 0.0,
    "max_length": 97,
}


def make_model(seed=0, **overrides):
    return randomize(Transformer(**{**SIZES, **overrides}), seed)


def make_decisive_model(scale, **settings):
    """Its weights are all drawn from one distribution: the wider, the surer it is."""
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "max_length": 30}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    model = Transformer(23, **sizes, **layers, **settings)
    random = np.random.default_rng(1)
    drawn = [scale * random.normal(size=w.shape) for w in model.get_weights()]
    model.set_weights(drawn)
    return model


def ids(lengths, width, size=19, first=4, pad_id=0, seed=0):
    """Int32 ids (B, width) of rows with these lengths, padded after their ends."""
    drawn = np.random.default_rng(seed).integers(first, size, (len(lengths), width))
    real = np.arange(width) < np.array(lengths)[:, None]
    return np.where(real, drawn, pad_id).astype("int32")


def inputs(source_lengths=(5, 3), target_lengths=(4, 7), start_id=2, **sizes):
    target = ids(target_lengths, max(target_lengths), seed=1, **sizes)
    target[:, 0] = start_id
    source = ids(source_lengths, max(source_lengths), **sizes)
    return {"source_ids": source, "target_ids": target}
