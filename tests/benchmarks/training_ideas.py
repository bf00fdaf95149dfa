"""What each idea of training is worth: trainings that differ in one thing.

    python tests/benchmarks/training_ideas.py FOLDER \
        --source train.de --target train.en \
        --validation-source val.de --validation-target val.en

All ideas change one training, `BASE`, which is small enough for a table of many rows.
Most are trained for half of its epochs (`--epochs`): the learning rate does not depend
on their number, so that trainings can be compared after as many epochs. On the
validation text, because the table is there to choose by, it says of each idea

- minutes: of the processor per epoch, validation included;
- after 6 epochs: the cross-entropy per token, not comparable between vocabularies, and
  BLEU, greedy, cased (sacreBLEU's defaults), the mean of epochs 5 and 6;
- at the end: the lowest cross-entropy, and BLEU of the translator that a training
  chooses (the mean of the last five epochs' weights, or the best epoch), greedy and
  with 5 beams. Below the base are those of an exponential moving average of the same
  training's weights, and of its last epoch.

An idea that is in FOLDER already is not trained again, and one that was stopped
resumes: the same command continues. `--ideas` chooses some of them, for two processes
on two cores. Without a corpus it prints the table of what is there.
"""

import argparse
import csv
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

BASE = {
    "preset": "phone-tiny",
    "vocabulary_size": 8000,
    "dtype": "mixed_bfloat16",
    "dropout": 0.1,
    "epochs": 12,
    "seed": 0,
}
HALF = "half of the epochs"
COOLDOWN = {"cooldown_epochs": HALF}
SHALLOW = {"num_encoder_layers": 3, "num_decoder_layers": 3}
IDEAS = {
    "base": {},
    "cooldown": COOLDOWN,
    "cooldown, seed 1": COOLDOWN | {"seed": 1},
    "cooldown, seed 2": COOLDOWN | {"seed": 2},
    "sampling 0.2": {"sampling": 0.2},
    "dropout 0.2": {"dropout": 0.2},
    "3 + 3 layers": SHALLOW,
    "3 + 3, cooldown": SHALLOW | COOLDOWN,
    "3 + 3, post-norm": SHALLOW | {"normalize_first": False},
    "3 + 3, 256 wide": {"preset": "small", "normalize_first": True},
    "preset small": {"preset": "small"},
    "4,000 pieces": {"vocabulary_size": 4000},
    "two vocabularies": {"separate_vocabularies": True},
    "no smoothing": {"label_smoothing": 0.0},
    "batches of 1,024": {"tokens_per_batch": 1024},
}
OF_THE_MODEL = (
    "preset",
    "vocabulary_size",
    "separate_vocabularies",
    "dtype",
    "dropout",
    "normalize_first",
    "num_encoder_layers",
    "num_decoder_layers",
)
EMA_MOMENTUM = 0.999
BEAM_SIZE = 5


def main():
    options = parsed()
    if options.source:
        for name in options.ideas:
            folder = folder_of(name, options)
            if not (folder / "scores.json").exists():
                scores = scores_of(name, folder, options)
                (folder / "scores.json").write_text(json.dumps(scores, indent=2))
    print_table(options.folder)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("folder", type=Path)
    for name in ("source", "target", "validation-source", "validation-target"):
        add(f"--{name}", type=Path)
    add("--ideas", nargs="+", default=list(IDEAS), choices=list(IDEAS), metavar="IDEA")
    add("--epochs", type=int, default=BASE["epochs"])
    options = parser.parse_args()
    validation = options.validation_source, options.validation_target
    if options.source and None in validation:
        parser.error("--source needs --validation-source and --validation-target")
    if options.source and not options.target:
        parser.error("--source needs --target")
    return options


def folder_of(name, options):
    return options.folder / "".join(c if c.isalnum() else "-" for c in name)


def read_validation(options):
    from keras_vanilla.data import ParallelCorpus

    return ParallelCorpus.from_files(
        options.validation_source, options.validation_target
    )


def scores_of(name, folder, options):
    """Trains one idea, or what is missing of it, and scores its translators."""
    from keras_vanilla.data import ParallelCorpus
    from keras_vanilla.training import new_translator, train_translator

    train = ParallelCorpus.from_files(options.source, options.target)
    validation = read_validation(options)
    settings = BASE | {"epochs": options.epochs} | IDEAS[name]
    if settings.get("cooldown_epochs") == HALF:
        settings["cooldown_epochs"] = max(1, options.epochs // 2)
    model = {k: v for k, v in settings.items() if k in OF_THE_MODEL}
    training = {k: v for k, v in settings.items() if k not in OF_THE_MODEL}
    translator = new_translator(train, seed=settings["seed"], **model)
    minutes = processor_minutes()
    chosen = train_translator(
        train,
        folder,
        validation,
        translator=translator,
        optimizer=averaging(translator.model, len(train)) if name == "base" else None,
        callbacks=[minutes],
        **training,
    )
    last = translator.load(folder / "last.keras")
    kinds = {"chosen": chosen, "last epoch": last}
    if name == "base":
        kinds["moving average"] = translator
    return {
        "name": name,
        "parameters": translator.model.count_params(),
        "minutes": minutes.seconds / 60 / options.epochs,
        "bleu": {kind: bleu(each, validation) for kind, each in kinds.items()},
    }


def averaging(model, pairs):
    """The recipe's, which keeps a moving average of the weights beside them."""
    from keras_vanilla.training import TrainingConfig, transformer_optimizer

    warmup_steps = TrainingConfig().resolve(pairs).warmup_steps
    recipe = transformer_optimizer(model.d_model, warmup_steps)
    config = recipe.get_config() | {"use_ema": True, "ema_momentum": EMA_MOMENTUM}
    return type(recipe).from_config(config)


def processor_minutes():
    import keras

    class ProcessorTime(keras.callbacks.Callback):
        """The processor's seconds of a training, those before a kill included."""

        seconds = 0.0

        def on_train_begin(self, logs=None):
            self._before = time.process_time() - self.seconds

        def on_epoch_end(self, epoch, logs=None):
            self.seconds = time.process_time() - self._before

        def get_state(self):
            return {"seconds": time.process_time() - self._before}

        def set_state(self, state):
            self.seconds = state["seconds"]
            self._before = time.process_time() - self.seconds

    return ProcessorTime()


def history(folder):
    """Cross-entropy and BLEU on the validation text, of each epoch."""
    with open(folder / "history.csv") as file:
        rows = list(csv.DictReader(file))
    return [
        (float(row["val_token_crossentropy"]), float(row["val_bleu"])) for row in rows
    ]


def bleu(translator, corpus):
    from keras_vanilla.translation import score

    return [score(translator, corpus, beam_size=k).bleu for k in (1, BEAM_SIZE)]


def print_table(folder):
    rows = [
        (json.loads(path.read_text()), history(path.parent))
        for path in folder.glob("*/scores.json")
    ]
    order = {name: place for place, name in enumerate(IDEAS)}
    # Those that are no longer among them come last.
    rows.sort(key=lambda row: order.get(row[0]["name"], len(order)))
    print(f"{'':<41}{'after 6 epochs':>17}{'at the end':>33}")
    print(
        f"{'idea':<21}{'parameters':>11}{'minutes':>9}{'entropy':>9}{'BLEU':>8}"
        f"{'epochs':>8}{'entropy':>9}{'greedy':>8}{'5 beams':>9}"
    )
    for scores, epochs in rows:
        entropies, bleus = zip(*epochs, strict=True)
        half = " " * 17
        if len(epochs) >= 6:
            half = f"{entropies[5]:9.3f}{(bleus[4] + bleus[5]) / 2:8.2f}"
        greedy, beams = scores["bleu"]["chosen"]
        print(
            f"{scores['name']:<21}{scores['parameters']:>11,}{scores['minutes']:9.2f}"
            f"{half}{len(epochs):8}{min(entropies):9.3f}{greedy:8.2f}{beams:9.2f}"
        )
        if scores["name"] == "base":
            for kind in ("moving average", "last epoch"):
                greedy, beams = scores["bleu"][kind]
                print(f"  {kind:<73}{greedy:8.2f}{beams:9.2f}")
    print("BLEU by epoch:")
    for scores, epochs in rows:
        print(f"{scores['name']:<21}", *(f"{bleu:.1f}" for _, bleu in epochs))


if __name__ == "__main__":
    main()
