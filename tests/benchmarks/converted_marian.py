"""A Marian model trained by `transformers`, converted: is what it says the same?

    python tests/benchmarks/converted_marian.py train.en train.de test.en FOLDER \
        --minutes 20 --output results/converted-marian.txt

trains a small `MarianMTModel` of Hugging Face's on two text files, and compares the
first 500 lines of a third, translated by `generate` and by the converted model: greedy
and with four beams. Then it exports the one file for a phone and verifies it.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))
from marian_folder import write_tokenizer  # noqa: E402
from peer_models import learn  # noqa: E402

from keras_vanilla import export  # noqa: E402
from keras_vanilla.decoding import beam_search  # noqa: E402
from keras_vanilla.interop import from_marian  # noqa: E402

WIDTH, MOST_TOKENS, LENGTH = 96, 16, 32
BEAM = {"num_beams": 4, "length_penalty": 1.0, "early_stopping": "never"}
ROUNDING = 1e-4  # of a score


def train(sources, targets, folder, minutes):
    """Trains a model for some minutes; writes it and its tokenizer."""
    folder.mkdir(parents=True)
    options = {"vocab_size": 2000, "pad_id": -1, "bos_id": -1, "eos_id": 0, "unk_id": 1}
    models = [learn(lines[:30_000], **options) for lines in (sources, targets)]
    vocabulary, _ = write_tokenizer(folder, models)
    tokenizer = MarianTokenizer.from_pretrained(folder)
    pad = vocabulary["<pad>"]
    model = MarianMTModel(_config(vocabulary, pad))
    source_ids = tokenizer(sources)["input_ids"]
    target_ids = tokenizer(text_target=targets)["input_ids"]
    batches = _batches(source_ids, target_ids)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: WIDTH**-0.5 * min((step + 1) ** -0.5, (step + 1) * 800**-1.5),
    )
    end, step = time.time() + 60 * minutes, 0
    model.train()
    while time.time() < end:
        rows = random.choice(batches)
        loss = _loss(
            model, *(_padded(each, rows, pad) for each in (source_ids, target_ids))
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}, loss {loss.item():.2f}", file=sys.stderr, flush=True)
    with torch.no_grad():
        model.model.shared.weight[pad] = 0.0
    model.generation_config.bad_words_ids = [[pad]]
    model.generation_config.renormalize_logits = True
    model.eval().save_pretrained(folder)
    return step


def compare(folder, lines):
    """Sentences that are equal, and the scores where they are not."""
    model = MarianMTModel.from_pretrained(folder).eval()
    tokenizer = MarianTokenizer.from_pretrained(folder)
    ours = from_marian(folder)
    ids = ours.encode(lines)
    yield f"ids equal: {tokenizer(lines)['input_ids'] == ids}"
    equal, ours_first, theirs_first = {"greedy": 0, "beams": 0}, [], []
    for start in range(0, len(lines), 50):
        batch = tokenizer(lines[start : start + 50], return_tensors="pt", padding=True)
        source_ids = batch.input_ids.numpy()
        for name, size, settings in (("greedy", 1, {}), ("beams", 4, BEAM)):
            with torch.no_grad():
                theirs = model.generate(
                    **batch,
                    max_length=LENGTH + 1,
                    return_dict_in_generate=True,
                    output_scores=True,
                    **settings,
                )
            ids, scores = beam_search(
                ours.model,
                source_ids,
                beam_size=size,
                length_normalization="power",
                length_penalty=1.0,
                max_length=LENGTH,
                n_best=1,
            )
            ids = np.asarray(ids)[:, 0]
            expected = theirs.sequences.numpy()[:, 1:]
            ids = ids[:, : expected.shape[1]]
            same = (ids == expected).all(axis=1)
            equal[name] += int(same.sum())
            if size > 1:
                ours_first += np.asarray(scores)[~same, 0].tolist()
                theirs_first += theirs.sequences_scores.numpy()[~same].tolist()
    yield f"equal sentences of {len(lines)}: {equal}"
    better = np.subtract(ours_first, theirs_first)
    counts = {
        "better": int((better > ROUNDING).sum()),
        "equal": int((abs(better) <= ROUNDING).sum()),
        "worse": int((better < -ROUNDING).sum()),
    }
    yield f"scores with beams where sentences differ: {counts}"


def _config(vocabulary, pad):
    return MarianConfig(
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        num_hidden_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH,
        max_position_embeddings=256,
        activation_function="swish",
        vocab_size=len(vocabulary),
        decoder_vocab_size=len(vocabulary),
        pad_token_id=pad,
        eos_token_id=vocabulary["</s>"],
        forced_eos_token_id=None,
        decoder_start_token_id=pad,
        scale_embedding=True,
        init_std=WIDTH**-0.5,
    )


def _batches(source_ids, target_ids, size=64):
    """Rows of about equal length."""
    lengths = [
        (len(source), len(target), row)
        for row, (source, target) in enumerate(zip(source_ids, target_ids, strict=True))
        if max(len(source), len(target)) <= MOST_TOKENS
    ]
    rows = [row for *_, row in sorted(lengths)]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _padded(ids, rows, pad):
    longest = max(len(ids[row]) for row in rows)
    return torch.tensor([ids[row] + [pad] * (longest - len(ids[row])) for row in rows])


def _loss(model, source, target):
    pad = model.config.pad_token_id
    start = torch.full((len(target), 1), pad)
    logits = model(
        input_ids=source,
        attention_mask=(source != pad).long(),
        decoder_input_ids=torch.cat([start, target[:, :-1]], dim=1),
    ).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=pad, label_smoothing=0.1
    )


def main():
    parser = argparse.ArgumentParser(description="Converts a trained Marian model.")
    for name in ("source", "target", "test", "folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--output", type=Path, help="file that the lines are added to")
    options = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    report = []
    if not options.folder.exists():
        texts = [
            path.read_text().splitlines() for path in (options.source, options.target)
        ]
        steps = train(*texts, options.folder, options.minutes)
        report.append(
            f"trained for {options.minutes} minutes, {steps} steps of 64 pairs"
        )
    lines = options.test.read_text().splitlines()
    lines = [line for line in lines if len(line) < 80][:500]
    report += compare(options.folder, lines)
    translator = from_marian(options.folder)
    print(*translator.translate(lines[:5], beam_size=4), sep="\n", file=sys.stderr)
    for quantize in (None, "int8"):
        path = options.folder / f"{quantize or 'float32'}.tflite"
        path.unlink(missing_ok=True)
        export.tflite(translator, path, quantize=quantize, sample=lines[:50])
        size = path.stat().st_size / 1e6
        verified = str(export.verify(translator, path, lines[:200])).splitlines()
        report.append(f"{path.name}, {size:.1f} MB")
        report += [line for line in verified if line[0] != " "]  # none of the corpus
    text = "\n".join(report)
    print(text)
    if options.output:
        with open(options.output, "a", encoding="utf-8") as file:
            file.write(f"{text}\n")


if __name__ == "__main__":
    main()
