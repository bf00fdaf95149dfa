"""What one more token costs, early and late in a sequence.

    python tests/benchmarks/decode_step_cost.py

Times `Transformer.decode_step`, compiled by TensorFlow, at two positions. The limit is
for the cache of a search: its length is fixed, so early tokens pay for late ones. The
row of caches just long enough shows what attention itself adds; the last row is a model
without a cache, which computes everything again for each token. The positions take
turns, so that a busy machine slows both; medians.
"""

import argparse
import statistics
import time

SEARCH = "cache of a search"
LIMIT = 1.3  # the late token costs at most this many times the early one


def main():
    options = parse()
    print(
        f"{options.preset}, batch {options.batch}, a cache of {options.cache_length} "
        f"positions; milliseconds a token, median of {options.repetitions}"
    )
    print(f"{'position':24}{options.early:>10}{options.late:>10}{'ratio':>8}")
    broken = False
    for name, token in compiled(options).items():
        early, late = medians(token, positions(options), options.repetitions)
        print(f"{name:24}{1e3 * early:10.3f}{1e3 * late:10.3f}{late / early:8.3f}")
        broken |= name == SEARCH and late / early > LIMIT
    print(f"the limit for the {SEARCH}, {LIMIT}, is {'BROKEN' if broken else 'kept'}")
    raise SystemExit(broken)


def parse():
    parser = argparse.ArgumentParser(
        description="Times one decoder step at two positions of a sequence."
    )
    parser.add_argument("--preset", default="small")
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--source-length", type=int, default=20)
    parser.add_argument("--cache-length", type=int, default=256)
    parser.add_argument("--early", type=int, default=20)
    parser.add_argument("--late", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=300)
    options = parser.parse_args()
    if not 0 <= options.early < options.late < options.cache_length:
        parser.error("expected 0 <= early < late < cache length")
    return options


def compiled(options):
    """Ways to the logits of a position, as functions of the position."""
    import keras
    import numpy as np
    import tensorflow as tf

    from keras_vanilla import Transformer

    keras.utils.set_random_seed(0)
    model = Transformer.from_preset(
        options.preset, source_vocabulary_size=options.vocabulary_size
    )
    shape = options.batch, options.source_length
    source_ids = np.random.default_rng(0).integers(4, options.vocabulary_size, shape)
    source_ids = tf.constant(source_ids, tf.int32)
    memory, memory_mask = model.encode(source_ids)
    ids = tf.fill([options.batch], 7)
    whole_targets = {n: tf.fill([options.batch, n + 1], 7) for n in positions(options)}
    caches = {
        length: model.start_cache(memory, memory_mask, length)
        for length in (options.cache_length, *(n + 1 for n in positions(options)))
    }

    @tf.function
    def step(index, cache):
        return model.decode_step(ids, index, cache)  # the written cache as well

    @tf.function
    def whole(target_ids):
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        return model(inputs)[:, -1]

    fixed = caches[options.cache_length]
    return {
        SEARCH: lambda n: step(tf.constant(n), fixed),
        "cache just long enough": lambda n: step(tf.constant(n), caches[n + 1]),
        "no cache": lambda n: whole(whole_targets[n]),
    }


def positions(options):
    return options.early, options.late


def medians(token, positions, repetitions):
    """Seconds a call at each position, measured in turns."""
    seconds = {position: [] for position in positions}
    for repetition in range(repetitions + 10):
        for position in positions:
            start = time.perf_counter()
            token(position)
            if repetition >= 10:  # the first ones compile and warm up
                seconds[position].append(time.perf_counter() - start)
    return [statistics.median(seconds[position]) for position in positions]


if __name__ == "__main__":
    main()
