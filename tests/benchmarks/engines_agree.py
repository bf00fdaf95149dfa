"""BLEU of one model in Keras, in transformers and in CTranslate2.

    python tests/benchmarks/engines_agree.py translator.keras --source test.de \
        --reference test.en

`to_marian` and `to_ctranslate2` write the folders. All three search with the same
number of beams and divide scores by the length; transformers and CTranslate2 fill the
places of hypotheses that ended again, Keras does not. All in float32.
"""

import sys
import tempfile
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import model_and_lines
import torch
from ctranslate2_runtime import id_of_piece, open_runtime, source_tokens
from transformers import MarianMTModel, MarianTokenizer

from keras_vanilla import Translator
from keras_vanilla.decoding import CompiledSearch, DecodingConfig, run_search
from keras_vanilla.interop import to_ctranslate2, to_marian
from keras_vanilla.translation import bleu_and_chrf
from keras_vanilla.translation.buckets import pad_rows

BATCH = 50
LONGEST = 128  # tokens


def main():
    parser = model_and_lines.parser(__doc__, lines=500)
    parser.add_argument("--reference", required=True, help="their translations")
    args = parser.parse_args()
    sources, references = (
        model_and_lines.first_lines(path, args.lines)
        for path in (args.source, args.reference)
    )
    translator = Translator.load(args.model).in_float32()
    with tempfile.TemporaryDirectory() as folder:
        marian, server = Path(folder) / "marian", Path(folder) / "ctranslate2"
        to_marian(translator, marian)
        to_ctranslate2(translator, server)
        for beams in (1, 4):
            results = {
                "Keras": in_keras(translator, sources, beams),
                "transformers": in_transformers(marian, sources, beams),
                "CTranslate2": in_ctranslate2(server, translator, sources, beams),
            }
            for name, texts in results.items():
                score = bleu_and_chrf(texts, references)
                same = sum(map(str.__eq__, texts, results["Keras"]))
                row = f"beams {beams}  {name:13} BLEU {score.bleu:.2f}"
                row += f"  {same} of {len(sources)} as in Keras"
                print(row, flush=True)


def in_keras(translator, sources, beams):
    """Translations by the searches here."""
    config = DecodingConfig(
        beam_size=beams,
        length_penalty=1.0,
        length_normalization="power",
        max_length=LONGEST,
    )
    search, ids = CompiledSearch(translator.model), []
    encoded = translator.encode(sources)
    width = max(map(len, encoded))
    for start in range(0, len(sources), BATCH):
        rows = pad_rows(encoded[start : start + BATCH], width, translator.model.pad_id)
        ids += search(run_search, rows, config=config).tolist()
    return translator.tokenizer.decode(ids)


def in_transformers(folder, sources, beams):
    """Translations by `generate`."""
    model = MarianMTModel.from_pretrained(folder).eval()
    tokenizer = MarianTokenizer.from_pretrained(folder)
    texts = []
    for start in range(0, len(sources), BATCH):
        batch = tokenizer(
            sources[start : start + BATCH], return_tensors="pt", padding=True
        )
        with torch.no_grad():
            ids = model.generate(
                **batch,
                num_beams=beams,
                length_penalty=1.0,
                max_length=LONGEST + 1,
                early_stopping=False,
                do_sample=False,
            )
        texts += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return texts


def in_ctranslate2(folder, translator, sources, beams):
    """Translations by `translate_batch`."""
    tokenizer = translator.tokenizer
    # The folder's settings say that each source gets its end.
    results = open_runtime(folder).translate_batch(
        source_tokens(translator, tokenizer.encode(sources)),
        beam_size=beams,
        length_penalty=1.0,
        max_decoding_length=LONGEST,
        max_batch_size=BATCH,
    )
    number = id_of_piece(tokenizer)
    ids = [[number[piece] for piece in result.hypotheses[0]] for result in results]
    return tokenizer.decode(ids)


if __name__ == "__main__":
    main()
