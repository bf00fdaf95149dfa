"""Models of OPUS-MT in their real sizes, converted: are the logits the same?

    python tests/benchmarks/full_sized_marian.py opus-mt-en-mg FOLDER

`transformers` makes a model of each family with random weights. The classic and the big
one have the tokenizer of the folder that is given, one as published; the tiny one has
its own of 32,000 pieces. Each is converted and saved in FOLDER, so that
`phone_speed.py --presets FOLDER/opus-mt_tiny.keras` can time it, and its logits are
compared on texts of 2 to 100 tokens.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import numpy as np
import torch
from marian_folder import write_model, write_tokenizer
from peer_models import learn
from phone_files import made_lines

from keras_vanilla.interop import from_marian

PIECES = 32_000
TINY = {"d_model": 256, "ffn": 1536, "heads": 8, "layers": (6, 2), "activation": "relu"}
CLASSIC = {"d_model": 512, "ffn": 2048, "heads": 8, "layers": (6, 6)}
BIG = {"d_model": 1024, "ffn": 4096, "heads": 16, "layers": (6, 6)}
FAMILIES = {
    "opus-mt_tiny": TINY,
    "opus-mt": {**CLASSIC, "activation": "swish"},
    "opus-mt-tc-big": {**BIG, "activation": "relu"},
}
LENGTHS = (2, 9, 30, 100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", type=Path, help="a folder of OPUS-MT")
    parser.add_argument("folder", type=Path, help="for the models")
    args = parser.parse_args()
    for family, sizes in FAMILIES.items():
        folder = args.folder / family
        folder.mkdir(parents=True)
        if family == "opus-mt_tiny":
            vocabulary = learnt_tokenizer(folder)
        else:
            vocabulary = copied_tokenizer(args.tokenizer, folder)
        model = write_model(folder, (vocabulary, vocabulary), **settings(**sizes))
        began = time.perf_counter()
        translator = from_marian(folder)
        seconds = time.perf_counter() - began
        translator.save(args.folder / f"{family}.keras")
        largest = largest_difference(translator.model, model)
        parameters = translator.model.count_params() / 1e6
        print(
            f"{family:15}{parameters:6.1f} million parameters, "
            f"vocabulary {len(vocabulary)}: logits within {largest:.1e}, "
            f"converted in {seconds:.1f} s",
            flush=True,
        )


def settings(d_model, ffn, heads, layers, activation):
    """The model's configuration in the terms of `transformers`."""
    return {
        "d_model": d_model,
        "init_std": 2 * d_model**-0.5,
        "noise": 0.02,
        "activation_function": activation,
        "max_position_embeddings": 512,
        **{f"{side}_ffn_dim": ffn for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": heads for side in ("encoder", "decoder")},
        **dict(zip(("encoder_layers", "decoder_layers"), layers, strict=True)),
    }


def learnt_tokenizer(folder):
    """Writes a tokenizer of made words; returns its vocabulary."""
    options = {"pad_id": -1, "bos_id": -1, "eos_id": 0, "unk_id": 1}
    model = learn(made_lines(), vocab_size=PIECES, **options)
    return write_tokenizer(folder, [model, model])[0]


def copied_tokenizer(published, folder):
    """Writes a published tokenizer; returns its vocabulary."""
    names = ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json")
    for name in names:
        shutil.copy(published / name, folder)
    return json.loads((folder / "vocab.json").read_text(encoding="utf-8"))


def largest_difference(model, peer):
    """Between the logits of both, in absolute size."""
    random, differences = np.random.default_rng(0), []
    for length in LENGTHS:
        source, target = random.integers(2, model.pad_id, (2, 1, length))
        source[:, -1], target[:, 0] = model.end_id, model.start_id
        logits = model({"source_ids": source, "target_ids": target})
        with torch.no_grad():
            expected = peer(
                input_ids=torch.tensor(source), decoder_input_ids=torch.tensor(target)
            ).logits
        allowed = np.delete(np.arange(model.target_vocabulary_size), model.pad_id)
        difference = np.asarray(logits)[..., allowed] - expected.numpy()[..., allowed]
        differences.append(np.abs(difference).max())
    return max(differences)


if __name__ == "__main__":
    main()
