r"""Makes a larger translator of a trained one, with pieces for new text.

    python tests/benchmarks/grown_translator.py en-fr grown.keras --d-ff 1024 \
      --vocabulary-size 9000 --source train.en ... --target train.fr ...

A new tokenizer is trained with the text. A piece that the old tokenizer has keeps its
embedding; another begins as the mean of the old pieces of its text. What the
feed-forward networks gain is multiplied by zero at first. All else is unchanged, so
that the result translates at once, if worse. Then train it further.
"""

import argparse

import keras
import numpy as np
from sentencepiece import SentencePieceProcessor

from keras_vanilla import Transformer, Translator
from keras_vanilla.cli.console import model_path
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import new_translator

SPACE = "\u2581"
FROM_TOKENIZER = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "max_length",
    "pad_id",
    "start_id",
    "end_id",
    "forbidden_ids",
)


def grown(old, corpus, vocabulary_size, d_ff):
    """Returns a Translator of the sizes, with the weights of `old`."""
    new = new_translator(
        corpus, preset="tiny", vocabulary_size=vocabulary_size, robust=True, seed=0
    )
    config, other = old.model.get_config(), new.model.get_config()
    config |= {name: other[name] for name in FROM_TOKENIZER}
    keras.utils.set_random_seed(0)
    model = Transformer.from_config(config | {"d_ff": d_ff, "dtype": "float32"})
    kept = {w.path: np.asarray(w.value, "float32") for w in old.model.weights}
    for weight in model.weights:
        value = kept[weight.path]
        if weight.path == "embedding/embeddings":
            value = embeddings(value, old.tokenizer, new.tokenizer)
        elif value.shape != tuple(weight.shape):  # new columns keep their random start
            larger = np.asarray(weight.value, "float32").copy()
            if "inner/kernel" not in weight.path:
                larger[:] = 0.0
            larger[tuple(map(slice, value.shape))] = value
            value = larger
        weight.assign(value)
    return Translator(new.tokenizer, model, about=old.about)


def embeddings(table, old, new):
    """Returns the embeddings of the new pieces."""
    old, new = (SentencePieceProcessor(model_proto=t.source_model) for t in (old, new))
    ids = {old.id_to_piece(i): i for i in range(old.get_piece_size())}
    random = np.random.default_rng(0)
    usual = np.linalg.norm(table[10:], axis=1).mean()
    result = np.zeros((new.get_piece_size(), table.shape[1]), "float32")
    for i in range(len(result)):
        piece = new.id_to_piece(i)
        if piece in ids:
            result[i] = table[ids[piece]]
            continue
        text = piece.replace(SPACE, " ")
        parts = old.encode(text)
        if not text.startswith(" ") and len(parts) > 1 and parts[0] == ids[SPACE]:
            parts = parts[1:]  # which the old tokenizer has put before it
        if parts:
            mean = table[parts].mean(0)
            norm = np.linalg.norm(mean)
            if norm < usual / 2:
                mean *= usual / max(norm, 1e-6)
            result[i] = mean + random.normal(0, 0.1 * table.std(), table.shape[1])
        else:
            result[i] = random.normal(0, table.std(), table.shape[1])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("start", type=model_path, help="en-fr, or a .keras file")
    parser.add_argument("output")
    parser.add_argument("--source", nargs="+", required=True)
    parser.add_argument("--target", nargs="+", required=True)
    parser.add_argument("--vocabulary-size", type=int, required=True)
    parser.add_argument("--d-ff", type=int, required=True)
    options = parser.parse_args()
    corpus = ParallelCorpus.from_files(options.source, options.target)
    old = Translator.load(options.start)
    translator = grown(old, corpus, options.vocabulary_size, options.d_ff)
    translator.save(options.output)
    print(f"{translator.model.count_params():,} parameters")


if __name__ == "__main__":
    main()
