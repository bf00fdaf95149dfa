"""Which decoder layer's cross-attention links a word with the word it translates.

    python tests/benchmarks/alignment_layers.py MODEL.keras --source test.de \\
        --target test.en --text train.de train.en

What is right is counted from the texts, without the model: the links of words that IBM
Model 1 (Brown et al. 1993, section 4.1) finds in both directions, of words that their
sentence has once. For each layer the share of these links that `align` finds too.
"""

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import model_and_lines
import numpy as np

from keras_vanilla import Translator
from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.translation.alignment import align

ROUNDS = 5


def main():
    parser = model_and_lines.parser(__doc__, lines=1000)
    parser.add_argument("--target", required=True, help="the translations")
    parser.add_argument(
        "--text", required=True, nargs=2, help="more pairs, of which words are learnt"
    )
    args = parser.parse_args()
    paths = args.source, args.target
    tested = [model_and_lines.first_lines(path, args.lines) for path in paths]
    learnt = [model_and_lines.first_lines(path, None) for path in args.text]
    sides = [numbered(more + lines) for more, lines in zip(learnt, tested, strict=True)]
    right = mutual_links(*sides, count=len(tested[0]))
    translator = Translator.load(args.model)
    model, tokenizer = translator.model, translator.tokenizer
    ids = tokenizer.encode(tested[0]), tokenizer.encode_target(tested[1])
    print(f"{len(right):,} links found in both directions")
    for layer in range(model.num_decoder_layers):
        links = align(model, tokenizer, *ids, layer=layer)
        found = {(i, *link) for i, of_pair in enumerate(links) for link in of_pair}
        usual = " (used)" * (layer == alignment_layer(model.num_decoder_layers))
        print(f"layer {layer}: {100 * len(found & right) / len(right):.1f} %{usual}")


def numbered(lines):
    """Each line's words as numbers, and how many words there are."""
    numbers = {}
    words = [
        [re.sub(r"\W", "", word).lower() for word in line.split()] for line in lines
    ]
    rows = [[numbers.setdefault(word, len(numbers)) for word in row] for row in words]
    return rows, len(numbers)


def mutual_links(sources, targets, count):
    """(line, source word, target word) of the last `count` lines."""
    forward, backward = probabilities(sources, targets), probabilities(targets, sources)
    pairs = zip(sources[0][-count:], targets[0][-count:], strict=True)
    links = set()
    for line, (source, target) in enumerate(pairs):
        for i, word in enumerate(source):
            j = likeliest(backward, word, target)
            mutual = target and i == likeliest(forward, target[j], source)
            if mutual and source.count(word) == target.count(target[j]) == 1:
                links.add((line, i, j))
    return links


def probabilities(sources, targets):
    """(source word, target word) -> p(target word | source word)."""
    pairs = list(zip(sources[0], targets[0], strict=True))
    arrays = translation_probabilities(pairs, sources[1], targets[1])
    source, target, p = (array.tolist() for array in arrays)
    return dict(zip(zip(source, target, strict=True), p, strict=True))


def likeliest(table, word, others):
    """The place of the word that most likely has this one as its translation."""
    p = [table.get((other, word), 0) for other in others]
    return p.index(max(p)) if p else None


def translation_probabilities(pairs, source_size, target_size):
    """The probabilities of IBM Model 1 (Brown et al. 1993, section 4.1).

    The model generates each target token from one source token, or from an extra empty
    token in front of each source. EM starts from equal probabilities.

    Returns:
        Three arrays with one element per two pieces that occur together: the source
        piece (`source_size` for the empty token), the target piece and
        p(target | source).
    """
    entries, owners = _links(pairs, source_size, target_size)
    entries, link = np.unique(entries, return_inverse=True)
    source, target = np.divmod(entries, target_size)
    p = np.ones(len(entries))
    for _ in range(ROUNDS):
        share = p[link]
        share /= np.bincount(owners, share)[owners]
        p = np.bincount(link, share, minlength=len(p))
        p /= np.bincount(source, p)[source]
    return source, target, p


def _links(pairs, source_size, target_size):
    """Two numbers for each source token combined with each target token of a pair.

    The first identifies the pieces, source piece * `target_size` + target piece; the
    second is the number of the target token among all target tokens.
    """
    entries, owners, count = [], [], 0
    for source, target in pairs:
        source = np.array([source_size, *source], "int64")
        target = np.array(target, "int64")
        entries.append((source[:, None] * target_size + target).ravel())
        owner = np.arange(count, count + len(target), dtype="int32")
        owners.append(np.tile(owner, len(source)))
        count += len(target)
    return np.concatenate(entries), np.concatenate(owners)


if __name__ == "__main__":
    main()
