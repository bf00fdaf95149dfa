"""The Transformer in NumPy float64, straight from the paper's formulas.

Imports nothing of the package. Weights are a flat dict of arrays keyed by path, such as
"encoder_layer_0/self_attention/query/kernel". Masks are boolean, True = may attend.
"""

import numpy as np


def positional_encoding(length, width, start=0, layout="interleaved", wavelength=1e4):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos(the same).

    The others have the sines first; "tensor2tensor" counts i up to an exponent of 1.
    """
    table = np.zeros((length, width))
    for row in range(length):
        for i in range(width // 2):
            exponent = 2 * i / width
            if layout == "tensor2tensor":
                exponent = 2 * i / (width - 2)
            angle = (start + row) / wavelength**exponent
            if layout == "interleaved":
                table[row, 2 * i : 2 * i + 2] = np.sin(angle), np.cos(angle)
            else:
                table[row, [i, width // 2 + i]] = np.sin(angle), np.cos(angle)
    return table


def masked_softmax(scores, mask):
    """Softmax over what may be attended to; a row with nothing to attend to is 0."""
    mask = np.broadcast_to(mask, scores.shape)
    powers = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    total = powers.sum(-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def attention(weights, query, value, mask, key=None):
    """Heads of softmax(Q K^T / sqrt(d_k)) V, joined; and their weights (B, N, T, S)."""
    heads = {
        name: np.einsum("btd,dnh->bnth", x, weights[f"{name}/kernel"])
        + weights.get(f"{name}/bias", np.zeros((1, 1)))[:, None]
        for name, x in (
            ("query", query),
            ("key", value if key is None else key),
            ("value", value),
        )
    }
    scores = np.einsum("bnth,bnsh->bnts", heads["query"], heads["key"])
    scores = scores / np.sqrt(heads["query"].shape[-1])
    rows = masked_softmax(scores, mask[:, None])
    joined = np.einsum("bnts,bnsh->btnh", rows, heads["value"])
    outputs = np.einsum("btnh,nhd->btd", joined, weights["attention_output/kernel"])
    return outputs + weights.get("attention_output/bias", 0.0), rows


def layer_norm(weights, x, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return centred / deviation * weights["gamma"] + weights["beta"]


def feed_forward(weights, x):
    inner = x @ weights["inner/kernel"] + weights["inner/bias"]
    return np.maximum(inner, 0) @ weights["outer/kernel"] + weights["outer/bias"]


def residual(weights, x, sublayer, normalize_first):
    norm = part(weights, "norm")
    if normalize_first:
        return x + sublayer(layer_norm(norm, x))
    return layer_norm(norm, x + sublayer(x))


def encoder_layer(weights, x, mask, normalize_first=False):
    def attend(x):
        pairs = mask[:, :, None] & mask[:, None]
        return attention(part(weights, "self_attention"), x, x, pairs)[0]

    def transform(x):
        return feed_forward(part(weights, "feed_forward"), x)

    for name, sublayer in (("self_attention", attend), ("feed_forward", transform)):
        x = residual(part(weights, f"{name}_residual"), x, sublayer, normalize_first)
    return x


def decoder_layer(weights, x, memory, mask, memory_mask, normalize_first=False):
    def self_attend(x):
        causal = np.tril(np.ones((x.shape[1], x.shape[1]), bool))
        pairs = mask[:, :, None] & mask[:, None] & causal
        return attention(part(weights, "self_attention"), x, x, pairs)[0]

    def cross_attend(x):
        pairs = mask[:, :, None] & memory_mask[:, None]
        return attention(part(weights, "cross_attention"), x, memory, pairs)[0]

    def transform(x):
        return feed_forward(part(weights, "feed_forward"), x)

    for name, sublayer in (
        ("self_attention", self_attend),
        ("cross_attention", cross_attend),
        ("feed_forward", transform),
    ):
        x = residual(part(weights, f"{name}_residual"), x, sublayer, normalize_first)
    return x


def transformer(
    weights,
    source_ids,
    target_ids,
    num_encoder_layers,
    num_decoder_layers,
    normalize_first=False,
    position_layout="interleaved",
    scale_embeddings=True,
    zero_pad=False,
    pad_id=0,
):
    """Logits (B, T, V) of a whole model; a tied table is "embedding/embeddings"."""
    shared = weights.get("embedding/embeddings")
    source_table = weights.get("source_embedding/embeddings", shared)
    target_table = weights.get("target_embedding/embeddings", shared)
    width = source_table.shape[1]

    def embed(table, ids):
        vectors = table[ids] * (np.sqrt(width) if scale_embeddings else 1.0)
        if zero_pad:
            vectors[ids == pad_id] = 0.0
        places = positional_encoding(ids.shape[1], width, layout=position_layout)
        return vectors + places

    memory, memory_mask = embed(source_table, source_ids), source_ids != pad_id
    for i in range(num_encoder_layers):
        layer = part(weights, f"encoder_layer_{i}")
        memory = encoder_layer(layer, memory, memory_mask, normalize_first)
    if "encoder_norm/gamma" in weights:
        memory = layer_norm(part(weights, "encoder_norm"), memory)

    x, mask = embed(target_table, target_ids), target_ids != pad_id
    mask[:, 0] = True  # the start token, whatever its id
    for i in range(num_decoder_layers):
        layer = part(weights, f"decoder_layer_{i}")
        x = decoder_layer(layer, x, memory, mask, memory_mask, normalize_first)
    if "decoder_norm/gamma" in weights:
        x = layer_norm(part(weights, "decoder_norm"), x)
    projection = weights.get("output_projection/embeddings", target_table)
    return x @ projection.T + weights.get("logits_bias/bias", 0.0)


def part(weights, name):
    """The weights under a path, with the path taken off."""
    prefix = name + "/"
    return {
        path.removeprefix(prefix): value
        for path, value in weights.items()
        if path.startswith(prefix)
    }
