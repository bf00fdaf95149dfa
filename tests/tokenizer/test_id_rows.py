"""Ids as a user gives them to a model by hand, and reads its search's result."""

import keras
import numpy as np
import pytest

from keras_vanilla import Transformer
from keras_vanilla.decoding import beam_search, greedy_search
from keras_vanilla.tokenizer import Tokenizer, WordTokenizer, pad_ids


def test_pad_ids():
    ids = pad_ids([[5, 6, 3], [], np.array([7, 3])], 9)
    assert ids.dtype == np.int32
    assert ids.tolist() == [[5, 6, 3], [9, 9, 9], [7, 3, 9]]
    assert pad_ids([[5, 3]], 0, length=4).tolist() == [[5, 3, 0, 0]]
    assert pad_ids([], 0).shape == (0, 0)


@pytest.mark.parametrize("kind", [Tokenizer, WordTokenizer])
def test_model_is_used_by_hand(kind):
    lines = [f"the cat number {n} sat" for n in range(50)]
    size = 288 if kind is Tokenizer else None
    tokenizer = kind.train(lines, vocabulary_size=size)
    keras.utils.set_random_seed(1)
    model = Transformer(
        source_vocabulary_size=tokenizer.vocabulary_size,
        num_encoder_layers=1,
        num_decoder_layers=1,
        d_model=8,
        num_heads=2,
        d_ff=16,
        max_length=20,
    )
    source_ids = pad_ids(tokenizer.encode(lines[:3]), tokenizer.pad_id)
    greedy = greedy_search(model, source_ids, max_length=5)
    texts = tokenizer.decode(greedy)
    assert len(texts) == 3
    assert tokenizer.decode(keras.ops.convert_to_numpy(greedy).tolist()) == texts
    ids, _ = beam_search(model, source_ids, max_length=5, n_best=2)
    assert len(tokenizer.decode(ids[:, 0])) == 3
    with pytest.raises(TypeError, match=r"of a beam search's ids, decode ids\[:, 0\]"):
        tokenizer.decode(ids)
    target_ids = pad_ids(tokenizer.encode_target(lines[:3]), tokenizer.pad_id, 20)
    started = np.insert(target_ids, 0, tokenizer.start_id, axis=1)
    assert tokenizer.decode(started) == lines[:3]
