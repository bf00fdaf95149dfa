"""Whether the default tier of the tests finds mistakes made on purpose.

    python tests/benchmarks/deliberate_mistakes.py [NUMBER ...]

Each mistake changes one expression in a copy of the repository; the tests of one or two
folders then run there until the first of them fails. The table has its name, or "NOT
FOUND".
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Its name, the file, the expression, the mistake, and the tests that should find it.
MISTAKES = [
    (
        "scores are not divided by sqrt(d_k)",
        "layers/multi_head_attention.py",
        "query * self.key_dim**-0.5",
        "query",
        "layers",
    ),
    (
        "no position sees itself",
        "layers/attention_masks.py",
        "ops.greater_equal(rows, columns)",
        "ops.greater(rows, columns)",
        "layers",
    ),
    (
        "a query that may attend to nothing has weights",
        "layers/attention_masks.py",
        "return _softmax(scores) * allowed",
        "return _softmax(scores)",
        "layers",
    ),
    (
        "embeddings are multiplied by d_model",
        "layers/token_embedding.py",
        "vectors * self.d_model**0.5",
        "vectors * self.d_model",
        "layers",
    ),
    (
        "cosines before sines",
        "layers/positional_encoding.py",
        "[ops.sin(angles), ops.cos(angles)]",
        "[ops.cos(angles), ops.sin(angles)]",
        "layers",
    ),
    (
        "cross-attention sees the source's padding",
        "layers/decoder_layer.py",
        "value_mask=memory_mask,",
        "value_mask=None,",
        "layers",
    ),
    (
        "a step of several beams writes to the wrong position",
        "layers/decoder_layer.py",
        "index * beams",
        "index",
        "decoding",
    ),
    (
        "the length penalty multiplies",
        "decoding/config.py",
        "log_probs / lengths**self.length_penalty",
        "log_probs * lengths**self.length_penalty",
        "decoding",
    ),
    (
        "a finished hypothesis loses its score",
        "decoding/beam.py",
        'ops.where(kept, of_parents(state["log_probs"], parents), best)',
        "best",
        "decoding",
    ),
    (
        "beams keep the tokens of another parent",
        "decoding/beam.py",
        'ids = of_parents(state["ids"], parents)',
        'ids = state["ids"]',
        "decoding",
    ),
    (
        "the decoder's input begins with padding",
        "data/padding.py",
        "ids[mask[:, 0], 0] = self._start_id",
        "ids[mask[:, 0], 0] = self.pad_id",
        "data",
    ),
    (
        "every epoch has the same order",
        "data/bucketing.py",
        "np.random.default_rng([seed, epoch])",
        "np.random.default_rng([seed, 0])",
        "data",
    ),
    (
        "smoothing is spread over V - 1 pieces",
        "training/loss.py",
        "label_smoothing / size\n",
        "label_smoothing / (size - 1)\n",
        "training",
    ),
    (
        "the gradient at the label is not smoothed",
        "training/loss.py",
        "- share - confidence)",
        "- share - 1.0)",
        "training",
    ),
    (
        "metrics count padding",
        "training/metrics.py",
        "ops.sum(values * weights)",
        "ops.sum(values)",
        "training",
    ),
    (
        "the warm-up is quadratic",
        "training/schedule.py",
        "rising = share * self.decay_from**-0.5",
        "rising = share * share * self.decay_from**-0.5",
        "training",
    ),
    (
        "the average of checkpoints is the last one",
        "training/callbacks.py",
        'np.mean(values, axis=0, dtype="float64")',
        "np.asarray(values[-1])",
        "training",
    ),
    (
        "a resumed epoch begins with its first batch again",
        "training/resume/exact_resume.py",
        "data.start_at(self._data_step(epoch, self._trained_before))",
        "data.start_at(self._data_step(epoch, 0))",
        "training",
    ),
    (
        "snapshots are read without their checksums",
        "training/resume/snapshots.py",
        'if header != FORMAT + f"{digest}\\n".encode():',
        "if not header:",
        "training",
    ),
    (
        "four bits are cut instead of rounded",
        "export/conversion.py",
        "np.rint(matrix / scale[:, None])",
        "np.trunc(matrix / scale[:, None])",
        "export",
    ),
    (
        "a translated file that was cut counts as whole",
        "bulk/shard.py",
        "if digest_of(path) != record[name]:",
        "if not digest_of(path):",
        "bulk",
    ),
    (
        "a file is translated in place",
        "bulk/shard.py",
        'unfinished = shard.folder / f"unfinished{shard.target.suffix}"',
        "unfinished = shard.target",
        "bulk",
    ),
    (
        "lines with problems are counted from 0",
        "bulk/shard.py",
        "problems.append([number, result.problem])",
        "problems.append([number - 1, result.problem])",
        "bulk",
    ),
    (
        "the next head is drawn",
        "plots/translation.py",
        "weights[head - 1] if head",
        "weights[head] if head",
        "plots",
    ),
    (
        "masks are drawn inverted",
        "plots/attention.py",
        "heat_map(mask, keys",
        "heat_map(1 - mask, keys",
        "plots",
    ),
    (
        "outputs may have 51 more tokens than the source",
        "decoding/hypothesis_end.py",
        "longest = source_length + EXTRA_TOKENS",
        "longest = source_length + EXTRA_TOKENS + 1",
        "decoding",
    ),
    (
        "the end is left out of the ids",
        "decoding/hypothesis_end.py",
        "ids[: ids.index(model.end_id) + 1]",
        "ids[: ids.index(model.end_id)]",
        "decoding translation",
    ),
    (
        "the best of a block has the block's first index",
        "decoding/top_k.py",
        "chosen * block + ops.mod(within, block)",
        "chosen * block",
        "decoding",
    ),
    (
        "the total of the logits lacks their maximum",
        "decoding/top_k.py",
        "ops.log(total) + maximum",
        "ops.log(total)",
        "decoding",
    ),
    (
        "a high temperature sharpens",
        "decoding/sampling.py",
        "logits = logits / temperature",
        "logits = logits * temperature",
        "decoding",
    ),
    (
        "a prefix may not be longer than the output",
        "decoding/constraints.py",
        "ops.maximum(limits, ops.sum(real, axis=1))",
        "limits",
        "decoding",
    ),
    (
        "n-grams of one token less may not repeat",
        "decoding/constraints.py",
        "for back in range(1, size):",
        "for back in range(1, size - 1):",
        "decoding",
    ),
    (
        "a term within a word counts",
        "decoding/terms.py",
        "same & ~begins_in_word",
        "same",
        "decoding",
    ),
    (
        "copied pasts keep the order of the beams",
        "decoding/beam_past.py",
        "beam_size, 1) + parents",
        "beam_size, 1) + 0 * parents",
        "decoding",
    ),
    (
        "int4 has eight levels above 0",
        "models/fake_quantization.py",
        '"int4": 7}',
        '"int4": 8}',
        "models export",
    ),
    (
        "inputs above 0 are not rounded from 0",
        "models/fake_quantization.py",
        "ops.minimum(ops.min(values, axis=-1, keepdims=True), 0.0)",
        "ops.min(values, axis=-1, keepdims=True)",
        "models export",
    ),
    (
        "lengths for the ratio count the end",
        "data/filters.py",
        "(longest - 1) / np.maximum(shortest - 1, 1)",
        "longest / np.maximum(shortest, 1)",
        "data",
    ),
    (
        "pairs of another order count as repeated",
        "data/filters.py",
        "* factors[positions]",
        "* factors[0 * positions]",
        "data",
    ),
    (
        "batches come shortest first in each epoch",
        "data/bucketing.py",
        "random.shuffle(self._batch_order)",
        "random.permutation(self._batch_order)",
        "data",
    ),
    (
        "a sentence may end before a small letter",
        "data/sentences.py",
        "if following[0].islower():",
        "if following[0].isupper() and False:",
        "data",
    ),
    (
        "ids without a piece are the first piece",
        "tokenizer/tokenizer.py",
        "np.where(unused, self.unknown_id, row)",
        "np.where(unused, 0, row)",
        "tokenizer",
    ),
    (
        "words are aligned by the first token's weight",
        "translation/alignment.py",
        "np.where(counts, words, 0.0) @ weights",
        "np.where(counts, words, 0.0) @ weights[:, ::-1]",
        "translation",
    ),
    (
        "texts after a full window are lost",
        "translation/batch_translation.py",
        "range(start, min(start + WINDOW, len(sources)))",
        "range(start, min(start + WINDOW - 1, len(sources)))",
        "translation",
    ),
    (
        "hypotheses that do not exist are returned",
        "translation/batch_translation.py",
        "if score == -np.inf:",
        "if score == np.inf:",
        "translation decoding",
    ),
    (
        "the worst translations are the best",
        "translation/evaluation.py",
        "worst = sorted(range(len(scores)), key=lambda i: scores[i])",
        "worst = sorted(range(len(scores)), key=lambda i: -scores[i])",
        "translation",
    ),
    (
        "a cut text is joined without its last piece",
        "translation/long_texts.py",
        "joined(pieces, [each.text for each in hypotheses])",
        "joined(pieces[1:], [each.text for each in hypotheses[1:]])",
        "translation",
    ),
    (
        "forbidden tokens are allowed in CTranslate2",
        "interop/to_ctranslate2.py",
        "if id_ < size]] = -np.inf",
        "if id_ < size]] = 0.0",
        "interop",
    ),
    (
        "a fused matrix is read in the wrong order",
        "interop/ctranslate2.py",
        "array[index * rows : (index + 1) * rows].T",
        "array[(count - 1 - index) * rows : (count - index) * rows].T",
        "interop",
    ),
    (
        "tied tables are not compared",
        "interop/layer_weights.py",
        "if not np.array_equal(self._arrays[first], self._arrays[name]):",
        "if not first:",
        "interop refusals test_refusals.py",
    ),
    (
        "a file's unknown pieces cost nothing",
        "export/sentencepiece/viterbi.py",
        "scores[model.unknown_id] = -np.inf",
        "scores[model.unknown_id] = 0.0",
        "export",
    ),
    (
        "spaces at the beginning stay in a file",
        "export/sentencepiece/tokenizer_graph.py",
        "starts + marks * first, sizes - marks * first",
        "starts, sizes",
        "export",
    ),
    (
        "text of more than a file takes is translated",
        "export/signatures.py",
        "too_long = count > self._max_source_tokens",
        "too_long = count < 0",
        "export",
    ),
    (
        "gradients of micro-batches are not divided",
        "distribution/steps/tensorflow_step.py",
        "divided([loss, *gradients], divisor)",
        "[divided([loss], divisor)[0], *gradients]",
        "distribution",
    ),
    (
        "a residual adds nothing",
        "layers/residual.py",
        "outputs = x + self.dropout(",
        "outputs = self.dropout(",
        "layers",
    ),
    (
        "weights per pair count padding",
        "distribution/steps/loss_share.py",
        "return ops.reshape(weights, (-1, 1)) * real",
        "return ops.reshape(weights, (-1, 1)) + 0 * real",
        "distribution training",
    ),
]


def main():
    parser = argparse.ArgumentParser(description="Makes mistakes on purpose.")
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    parser.add_argument("--tier", default="not full and not slow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", "node_modules", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for number in options.numbers or range(1, len(MISTAKES) + 1):
            name, *mistake = MISTAKES[number - 1]
            print(f"{number:2} {name:54} {found_by(copy, *mistake, options.tier)}")
            sys.stdout.flush()


def found_by(copy, file, before, after, tests, tier):
    """The first test that fails with the mistake."""
    path = copy / "keras_vanilla" / file
    right = path.read_text(encoding="utf-8")
    if right.count(before) != 1:
        raise SystemExit(f"{file} no longer has {before!r} exactly once.")
    path.write_text(right.replace(before, after), encoding="utf-8")
    tests = [f"tests/{each}" for each in tests.split()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-m", tier]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-n", "2", *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "CI": "1"},
        capture_output=True,
        text=True,
    )
    path.write_text(right, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", result.stdout, re.MULTILINE)
    return failed[1] if failed else f"NOT FOUND (status {result.returncode})"


if __name__ == "__main__":
    main()
