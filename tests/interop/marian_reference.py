"""Marian's Transformer in NumPy float64, from its own names and formulas.

Imports nothing of the package. One sentence at a time, without padding.
"""

import numpy as np


def sinusoids(length, width):
    """sin and cos of pos / 10000^(i / (width / 2 - 1)), all sines first."""
    table = np.zeros((length, width))
    for position in range(length):
        for i in range(width // 2):
            step = np.log(10000.0) / (width // 2 - 1)
            angle = position * np.exp(-step * i)
            table[position, i] = np.sin(angle)
            table[position, width // 2 + i] = np.cos(angle)
    return table


def logits(arrays, options, source, words, epsilon=1e-6):
    """Logits of the next word after none, one, ... and all of some words (T + 1, V).

    Args:
        arrays: dict of a model file.
        options: dict of its options.
        source: list of ids, the end last.
        words: list of ids.
    """
    arrays = {name: array.astype("float64") for name, array in arrays.items()}
    model = _Model(arrays, options, epsilon)
    memory = model.stack("encoder", model.embed("encoder", source))
    embedded = np.concatenate(
        [np.zeros((1, options["dim-emb"])), model.rows("decoder")[words]]
    )
    return model.output(model.stack("decoder", model.positioned(embedded), memory))


class _Model:
    def __init__(self, arrays, options, epsilon):
        self.arrays, self.options, self.epsilon = arrays, options, epsilon
        self.pre = "n" in options["transformer-preprocess"]

    def rows(self, side):
        return self.arrays.get("Wemb", self.arrays.get(f"{side}_Wemb"))

    def embed(self, side, ids):
        return self.positioned(self.rows(side)[ids])

    def positioned(self, vectors):
        length, width = vectors.shape
        return np.sqrt(width) * vectors + sinusoids(length, width)

    def stack(self, side, x, memory=None):
        for number in range(1, self.options[f"{side[:3]}-depth"] + 1):
            layer = f"{side}_l{number}"
            name = f"{layer}_self"
            mask = np.ones((len(x), len(x)), bool)
            if side == "decoder":
                mask = np.tril(mask)
            x = self.sublayer(
                f"{name}_Wo", x, lambda y, n=name, m=mask: self.attend(n, y, y, m)
            )
            if memory is not None:
                name = f"{layer}_context"
                mask = np.ones((len(x), len(memory)), bool)
                x = self.sublayer(
                    f"{name}_Wo",
                    x,
                    lambda y, n=name, m=mask: self.attend(n, y, memory, m),
                )
            name = f"{layer}_ffn"
            x = self.sublayer(f"{name}_ffn", x, lambda y, n=name: self.feed(n, y))
        if self.options.get("transformer-postprocess-top") == "n":
            x = self.norm(f"{side}_top", x)
        return x

    def sublayer(self, name, x, function):
        if self.pre:
            return x + function(self.norm(name, x, "_pre"))
        return self.norm(name, x + function(x))

    def norm(self, name, x, suffix=""):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.epsilon)
        scale = self.arrays[f"{name}_ln_scale{suffix}"]
        return scaled * scale + self.arrays[f"{name}_ln_bias{suffix}"]

    def affine(self, name, letter, x):
        return x @ self.arrays[f"{name}_W{letter}"] + self.arrays[f"{name}_b{letter}"]

    def attend(self, name, queries, values, mask):
        heads = self.options["transformer-heads"]
        size = queries.shape[-1] // heads
        q = self.affine(name, "q", queries)
        k = self.affine(name, "k", values)
        v = self.affine(name, "v", values)
        joined = np.zeros_like(q)
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = q[:, part] @ k[:, part].T / np.sqrt(size)
            powers = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0)
            weights = powers / powers.sum(-1, keepdims=True)
            joined[:, part] = weights @ v[:, part]
        return self.affine(name, "o", joined)

    def feed(self, name, x):
        inner = self.affine(name, "1", x)
        if self.options["transformer-ffn-activation"] == "relu":
            inner = np.maximum(inner, 0)
        else:
            inner = inner / (1 + np.exp(-inner))
        return self.affine(name, "2", inner)

    def output(self, x):
        name = "decoder_ff_logit_out"
        table = self.arrays.get(f"{name}_Wt", self.rows("decoder"))
        columns = self.arrays.get(f"{name}_W", table.T)
        return x @ columns + self.arrays.get(f"{name}_b", 0.0)
