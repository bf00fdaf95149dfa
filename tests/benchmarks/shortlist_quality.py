"""BLEU and chrF of searches with a shortlist, beside those of the whole vocabulary.

    python tests/benchmarks/shortlist_quality.py MODEL.keras --source test.de \
        --reference test.en --text train.de train.en

In Keras, in float32. The shortlist is learnt from the text.
"""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import dataclasses

import model_and_lines

from keras_vanilla import Translator
from keras_vanilla.data.corpus import read_lines
from keras_vanilla.decoding import CompiledSearch, DecodingConfig, run_search
from keras_vanilla.decoding.shortlisted import shortlisted_search
from keras_vanilla.translation import Shortlist, bleu_and_chrf
from keras_vanilla.translation.buckets import pad_rows

BATCH = 50
LONGEST = 60  # tokens


def main():
    parser = model_and_lines.parser(__doc__, lines=1000)
    parser.add_argument("--reference", required=True, help="their translations")
    parser.add_argument("--text", required=True, nargs=2, help="a parallel text")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512, 768, 1024])
    args = parser.parse_args()
    sources, references = (
        model_and_lines.first_lines(path, args.lines)
        for path in (args.source, args.reference)
    )
    translator = Translator.load(args.model).in_float32()
    began = time.perf_counter()
    shortlist = Shortlist.learn(translator.tokenizer, *map(read_lines, args.text))
    print(f"learnt in {time.perf_counter() - began:.1f} s")
    for beams in (1, 4):
        config = DecodingConfig(beam_size=beams, max_length=LONGEST)
        whole = translations(translator, sources, run_search, config=config)
        show(beams, "whole", whole, whole, references)
        for size in args.sizes:
            settings = {"shortlist": dataclasses.replace(shortlist, size=size)}
            texts = translations(
                translator, sources, shortlisted_search, config=config, **settings
            )
            show(beams, size, texts, whole, references)


def translations(translator, sources, search, **settings):
    compiled, ids = CompiledSearch(translator.model), []
    rows = translator.encode(sources)
    width = max(map(len, rows))
    for start in range(0, len(rows), BATCH):
        batch = pad_rows(rows[start : start + BATCH], width, translator.model.pad_id)
        ids += compiled(search, batch, **settings).tolist()
    return translator.tokenizer.decode(ids)


def show(beams, size, texts, whole, references):
    score = bleu_and_chrf(texts, references)
    same = sum(map(str.__eq__, texts, whole))
    print(
        f"beams {beams}  {size:>5} pieces  BLEU {score.bleu:.2f}  "
        f"chrF {score.chrf:.2f}  {same} of {len(texts)} the same",
        flush=True,
    )


if __name__ == "__main__":
    main()
