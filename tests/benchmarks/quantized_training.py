"""What 8 and 4 bits cost, without and with training for them, and how large they are.

    python tests/benchmarks/quantized_training.py de-en/translator.keras FOLDER \
        --source train.de --target train.en \
        --validation-source val.de --validation-target val.en \
        --test-source test2016.de --test-reference test2016.en
    python tests/benchmarks/quantized_training.py --sizes FOLDER

BLEU and chrF by greedy search, cased (sacreBLEU's defaults): of Keras in float32, of
Keras with the roundings of the file (the simulation), and of the file, run by LiteRT in
one thread, text in and text out. Then, of each file, the share of sentences that are
the simulation's, and those of the translator in float32 that it was made from. What is
in FOLDER already is used again, so that the command continues where it was stopped.

`--sizes` exports untrained models: preset small with 8,000 pieces, base with 32,000.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_vanilla import Translator, export
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.export.checks.runners import open_exported
from keras_vanilla.models import fake_quantize
from keras_vanilla.training import train_translator
from keras_vanilla.translation.evaluation import bleu_and_chrf

MODES = ("int8", "int4")


def main():
    options = parsed()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.sizes:
        report_sizes(options.folder)
        return
    corpora = {
        name: ParallelCorpus.from_files(*paths)
        for name, paths in {
            "train": (options.source, options.target),
            "validation": (options.validation_source, options.validation_target),
            "test": (options.test_source, options.test_reference),
        }.items()
    }
    translator = Translator.load(options.model).in_float32()
    test = corpora["test"][: options.lines]
    print(f"{len(test):,} sentences, {translator.model.count_params():,} parameters")
    print(f"{'':<17}{'MB':>6}  {'Keras':>12}  {'simulation':>12}  {'file':>12}  same")
    float32 = measured("float32", None, translator, test, options.folder)
    for mode in MODES:
        measured(mode, mode, translator, test, options.folder, float32)
        trained = trained_for(mode, translator, corpora, options)
        measured(f"{mode}-trained", mode, trained, test, options.folder, float32)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("model", nargs="?", type=Path)
    add("folder", type=Path)
    add("--sizes", action="store_true")
    for name in ("source", "target", "validation-source", "validation-target"):
        add(f"--{name}", type=Path)
    add("--test-source", type=Path)
    add("--test-reference", type=Path)
    add("--lines", type=int, help="of the test alone; all without")
    add("--epochs", type=int, help="of each training; else the recipe's")
    add("--tokens-per-batch", type=int)
    add("--learning-rate", type=float)
    return parser.parse_args()


def trained_for(mode, translator, corpora, options):
    """The translator of a training for one precision, or of an earlier command."""
    output = options.folder / f"trained-{mode}"
    if (output / "results.json").exists():
        return Translator.load(output / "translator.keras")
    names = ("epochs", "tokens_per_batch", "learning_rate")
    numbers = {name: getattr(options, name) for name in names}
    return train_translator(
        corpora["train"],
        output,
        corpora["validation"],
        translator=translator.copy(),
        quantize=mode,
        **numbers,
    )


def measured(name, mode, translator, test, folder, float32=None):
    """Prints one line; the translations of Keras in float32."""
    texts = list(test.sources)
    in_float32 = float32 if name == mode else translator.translate(texts)
    simulated = translator.copy()
    fake_quantize(simulated.model, mode)
    in_keras = simulated.translate(texts) if mode else in_float32
    path = folder / f"{name}.tflite"
    if not path.exists():  # the comparison is below
        settings = {"check": "structure", "max_bytes": 1024}
        export.tflite(translator, path, quantize=mode, **settings)
    sources = translator.encode(texts)
    _, of_file = open_exported(path).translate(texts, sources, translator.model)
    columns = [scores(each, test) for each in (in_float32, in_keras, of_file)]
    shares = [share(of_file, each) for each in (in_keras, float32 or in_float32)]
    size = f"{path.stat().st_size / 1e6:6.2f}"
    print(f"{name:<17}{size}  {'  '.join(columns)}  {' '.join(shares)}", flush=True)
    return in_float32


def scores(translations, test):
    result = bleu_and_chrf(translations, list(test.targets))
    return f"{result.bleu:.2f} {result.chrf:.2f}".rjust(12)


def share(ours, theirs):
    return f"{100 * sum(map(str.__eq__, ours, theirs)) / len(ours):.1f}"


def report_sizes(folder):
    from phone_files import VOCABULARY_SIZES, _translator, made_lines

    lines = made_lines()
    for preset in ("small", "base"):
        path = folder / f"{preset}.model"
        translator = _translator(path, preset, lines)
        parameters = translator.model.count_params()
        print(
            f"{preset}, {VOCABULARY_SIZES[preset]:,} pieces, {parameters:,} parameters"
        )
        for mode in (None, *MODES):
            file = folder / f"{preset}-{mode}.tflite"
            if not file.exists():
                export.tflite(translator, file, mode, check="structure")
            print(f"  {mode or 'float32'}: {file.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
