import keras
import numpy as np

from keras_vanilla.tokenizer import WordTokenizer, pad_ids


def test_pad_ids():
    ids = pad_ids([[5, 6, 3], [], np.array([7, 3])], 9)
    assert ids.dtype == np.int32
    assert ids.tolist() == [[5, 6, 3], [9, 9, 9], [7, 3, 9]]
    assert pad_ids([[5, 3]], 0, length=4).tolist() == [[5, 3, 0, 0]]
    assert pad_ids([], 0).shape == (0, 0)


def test_tokenizer_decodes_arrays_and_tensors():
    lines = [f"the cat number {n} sat" for n in range(5)]
    tokenizer = WordTokenizer.train(lines)
    ids = pad_ids(tokenizer.encode_target(lines), tokenizer.pad_id, 9)
    started = np.insert(ids, 0, tokenizer.start_id, axis=1)
    for each in (ids, started, keras.ops.convert_to_tensor(started), started.tolist()):
        assert tokenizer.decode(each) == lines
