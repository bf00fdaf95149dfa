"""What fine-tuning gains in a new domain, and what it forgets of the old one.

    python tests/benchmarks/fine_tuning.py

A tiny translator learns a generated language: words, translated one by one and put in
reverse order. The domain has words of its own, and three that it translates otherwise.
BLEU is sacreBLEU's, of greedy search, on sentences that no training has seen.
"""

import contextlib
import os
import random
import tempfile
import time
from pathlib import Path

from keras_vanilla.data import ParallelCorpus
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import new_translator, train_translator
from keras_vanilla.translation import score

GENERAL = (
    "time year way day thing man world life hand part child eye woman place week case "
    "point number group house mouse key bank table"
).split()
OF_THE_DOMAIN = (
    "server router query folder kernel thread cache screen socket disk".split()
)
OTHERWISE = ("mouse", "key", "table")  # in the domain
RATE = {"learning_rate": 2e-3}
SEED = 0


def main():
    general, domain = (
        sentences("general", 8000, seed=1),
        sentences("domain", 3000, seed=3),
    )
    unseen = sentences("general", 200, seed=2), sentences("domain", 200, seed=4)
    print(f"{len(general):,} general pairs, {len(domain):,} of the domain")
    print(f"{'BLEU':<40}{'general':>9}{'domain':>9}{'seconds':>9}", flush=True)

    def measure(name, corpus, translator, **settings):
        since = time.perf_counter()
        translator = trained(corpus, translator, **settings)
        seconds = time.perf_counter() - since
        scores = [score(translator, each).bleu for each in unseen]
        print(f"{name:<40}{scores[0]:9.1f}{scores[1]:9.1f}{seconds:9.0f}", flush=True)
        return translator

    start = measure("before", general, untrained(general), epochs=10, warmup_steps=400)
    mixed = domain + general[: len(domain)]
    for name, corpus, settings in (
        ("learning rate 2e-3", domain, RATE),
        ("2e-3, with as much general text", mixed, RATE),
        ("2e-3, embeddings frozen", domain, {**RATE, "freeze": "embeddings"}),
        ("2e-3, encoder frozen", domain, {**RATE, "freeze": "encoder"}),
        ("learning rate 2e-4", domain, {"learning_rate": 2e-4}),
    ):
        measure(name, corpus, start.copy(), epochs=6, **settings)


def sentences(kind, count, seed):
    """A corpus of sentences of 2 to 8 words."""
    draw = random.Random(seed)
    words = GENERAL if kind == "general" else [*OF_THE_DOMAIN, *GENERAL[10:]]
    sources = [draw.choices(words, k=draw.randint(2, 8)) for _ in range(count)]
    targets = [
        [translated(word, kind) for word in reversed(source)] for source in sources
    ]
    return ParallelCorpus(map(" ".join, sources), map(" ".join, targets))


def translated(word, kind):
    """A word of the other language: the letters turned round, and an ending."""
    return word[::-1] + ("um" if kind == "domain" and word in OTHERWISE else "a")


def untrained(corpus):
    lines = [*corpus.sources, *corpus.targets]
    tokenizer = Tokenizer.train(lines, vocabulary_size=330)
    return new_translator(
        corpus,
        tokenizer=tokenizer,
        preset="tiny",
        max_length=60,
        dropout=0.1,
        seed=SEED,
    )


def trained(corpus, translator, **settings):
    with tempfile.TemporaryDirectory() as folder, quiet():
        return train_translator(
            corpus,
            Path(folder) / "run",
            translator=translator,
            seed=SEED,
            tokens_per_batch=1024,
            max_tokens=60,
            average_last=1,
            **settings,
        )


@contextlib.contextmanager
def quiet():
    """Without the display of each epoch."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        yield


if __name__ == "__main__":
    main()
