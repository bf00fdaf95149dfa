"""What terms would cost inside a `.tflite` file: one search with and without them.

    python tests/benchmarks/terms_in_file.py MODEL.keras --source test.en

Exported files have no terms. The graphs here map ids to ids with the search of an
exported file, in int8 and in one thread. One has no terms, the others have inputs for
one and for four terms. Each sentence is translated in turns: without terms, with unused
inputs, and with one term, the third word of the translation by Keras. The time is the
least processor time of seven calls; each call follows one of the same graph that isn't
timed, so that the weights are equally near.
"""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import model_and_lines
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import Transformer, Translator
from keras_vanilla.decoding import DecodingConfig, Terms, run_search
from keras_vanilla.export.conversion import convert
from keras_vanilla.export.metadata.flatbuffer import packed
from keras_vanilla.export.search_graph import _GrowingCaches
from keras_vanilla.translation.required_terms import RequiredTerms

LENGTH, PIECES, SLOTS = 128, 8, (1, 4)
REPETITIONS = 7


class IdsWithTerms(tf.Module):
    """Maps ids and the pieces of J terms to ids; without terms if J is 0."""

    def __init__(self, translator, config, slots, inside):
        super().__init__()
        model = translator.model
        self.weights = [weight.value for weight in model.weights]
        self._searched = _GrowingCaches(model, None)
        self._config, self._slots, self._inside = config, slots, inside

    def signatures(self):
        inputs = {
            "source_ids": tf.TensorSpec([1, LENGTH], tf.int32),
            "count": tf.TensorSpec([], tf.int32),
        }
        if self._slots:
            inputs["terms"] = tf.TensorSpec([1, self._slots, 1, PIECES], tf.int32)
            inputs["needed"] = tf.TensorSpec([1, self._slots], tf.int32)
        translate = tf.function(self._translate, autograph=False)
        return {"translate": translate.get_concrete_function(**inputs)}

    def _translate(self, source_ids, count, terms=None, needed=None):
        sentence = tf.slice(source_ids, [0, 0], tf.stack([1, count]))
        if terms is not None:
            terms = Terms(terms, needed, tf.constant(self._inside))
        ids, scores = run_search(
            self._searched, sentence, self._config, return_scores=True, terms=terms
        )
        return {"ids": tf.maximum(ids, 0), "scores": scores}


def main():
    parser = model_and_lines.parser(__doc__, lines=40)
    parser.add_argument(
        "--untrained", help="a preset instead of the model's sizes; 20 tokens long"
    )
    args = parser.parse_args()
    translator = Translator.load(args.model).in_float32()
    lines = model_and_lines.first_lines(args.source, args.lines)
    required = [third_word(text) for text in translator.translate(lines)]
    sources = translator.encode(lines)
    if args.untrained:
        translator = untrained(translator, args.untrained)
    terms = RequiredTerms(translator.tokenizer, translator.model, {"a": "b"})
    rows = [terms.batch([{word: 1}], [[1]], [[]], None) for word in required]
    for beam_size in (1, 4):
        length = 20 if args.untrained else None
        config = DecodingConfig(beam_size=beam_size, max_length=length)
        files = [converted(translator, config, n, rows[0].inside) for n in (0, *SLOTS)]
        measure(beam_size, files, sources, rows)


def third_word(text):
    words = [word.strip(".,!?") for word in text.split()] or ["a"]
    return words[min(2, len(words) - 1)]


def untrained(translator, preset):
    """A translator of a preset's sizes with random weights and the same tokenizer."""
    size = translator.model.target_vocabulary_size
    model = Transformer.from_preset(preset, source_vocabulary_size=size)
    return Translator(translator.tokenizer, model)


def converted(translator, config, slots, inside):
    """The runner of one graph, in int8."""
    copy = translator.copy()
    graph = IdsWithTerms(copy, config, slots, inside)
    content = packed(convert(graph, copy.model, "int8"))
    return Interpreter(model_content=content, num_threads=1).get_signature_runner(
        "translate"
    )


def measure(beam_size, files, sources, rows):
    plain, *with_terms = files
    cases = {"without terms": lambda row: (plain, {})}
    for slots, file in zip(SLOTS, with_terms, strict=True):
        unused, used = f"{slots} unused", f"1 term in {slots}"
        cases[unused] = lambda row, n=slots, file=file: (file, inputs(n, None))
        cases[used] = lambda row, n=slots, file=file: (file, inputs(n, row))
    least = np.full((len(cases), len(sources)), np.inf)
    tokens = np.zeros(least.shape)
    for _ in range(REPETITIONS):
        for i, (source, row) in enumerate(zip(sources, rows, strict=True)):
            ids = np.zeros((1, LENGTH), "int32")
            ids[0, : len(source)] = source
            sentence = {"source_ids": ids, "count": np.int32(len(source))}
            for k, case in enumerate(cases.values()):
                run, values = case(row)
                run(**sentence, **values)
                began = time.process_time()
                result = run(**sentence, **values)
                least[k, i] = min(least[k, i], time.process_time() - began)
                tokens[k, i] = np.count_nonzero(result["ids"])
    per_token = 1e3 * least.sum(axis=1) / tokens.sum(axis=1)
    for name, ms, count in zip(cases, per_token, tokens.mean(axis=1), strict=True):
        print(
            f"beam {beam_size}, {name}: {ms:.3f} ms per token ({count:.1f} tokens), "
            f"{ms / per_token[0]:.2f} of the time",
            flush=True,
        )


def inputs(slots, row):
    """The terms of a sentence in a file of that many terms; None for no term."""
    terms = np.full((1, slots, 1, PIECES), -1, "int32")
    needed = np.zeros((1, slots), "int32")
    if row is not None:
        form = row.ids[0, 0, 0][:PIECES]
        terms[0, 0, 0, : len(form)] = form
        needed[0, 0] = row.needed[0, 0]
    return {"terms": terms, "needed": needed}


if __name__ == "__main__":
    main()
