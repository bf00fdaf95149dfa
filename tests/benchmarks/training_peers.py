"""Training steps of five encoder-decoder models of one size, for `training_step.py`.

Each is a worker: a JSON object of settings as its first argument; then, for each line
`step` or `matrix` of standard input, a line of JSON with its seconds or its GFLOP/s.

    ours            Transformer, SmoothedCrossentropy, the paper's Adam
    keras           layers of Keras, among them MultiHeadAttention; sparse cross-entropy
    keras_hub       TransformerEncoder and TransformerDecoder of KerasHub, the same loss
    torch           torch.nn.Transformer, label smoothing, Adam
    torch_compiled  the same under torch.compile

The first three run on the backend that KERAS_BACKEND names; all of them on a GPU if
there is one. With `masks` the others mask padding in every attention, as ours always
does; there is none in the batches.
"""

import json
import resource
import sys
import time

import numpy as np

PEERS = ["ours", "keras", "keras_hub", "torch", "torch_compiled"]
MATRIX = 2048  # rows and columns of the products whose rate is the peak


def main():
    settings = json.loads(sys.argv[1])
    peer = settings["peer"]
    step, matrix = (torch_peer if "torch" in peer else keras_peer)(**settings)
    for _ in range(2):
        step()  # what is compiled is compiled
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        result = {"step": timed_step, "matrix": matrix}[line.strip()]
        print(json.dumps(result(step) if line.strip() == "step" else result()))
        sys.stdout.flush()


def timed_step(step):
    begin = time.perf_counter()
    step()
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "memory": memory() / 2**30}


def memory():
    """The largest number of bytes, of the GPU if there is one."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch and torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    if jax and (statistics := jax.devices()[0].memory_stats()):
        return statistics["peak_bytes_in_use"]
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def rate(multiply):
    """GFLOP/s of a matrix product, the best of some."""
    multiply()
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        multiply()
        seconds.append(time.perf_counter() - begin)
    return 2e-9 * MATRIX**3 / min(seconds)


def ids(batch, length, vocabulary):
    random = np.random.default_rng(0)
    return [
        random.integers(4, vocabulary, (batch, length)).astype("int32")
        for _ in range(3)
    ]


def keras_peer(peer, sizes, batch, length, vocabulary, precision, masks):
    import keras
    from keras import ops

    if precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    source, target, labels = ids(batch, length, vocabulary)
    inputs = {"source_ids": source, "target_ids": target}
    if peer == "ours":
        model = our_model(sizes, vocabulary)
    else:
        model = keras_model(peer, sizes, vocabulary, length, masks)
    weights = np.ones_like(labels, "float32")

    def step():
        model.train_on_batch(inputs, labels, weights)

    matrices = ops.cast(keras.random.normal((2, MATRIX, MATRIX)), precision)
    one, two = matrices[0], matrices[1]

    def multiply():
        product = ops.matmul(one, two)
        float(ops.cast(product[0, 0], "float32"))  # waits for it

    return step, lambda: rate(multiply)


def our_model(sizes, vocabulary):
    from keras_vanilla import Transformer
    from keras_vanilla.training import SmoothedCrossentropy, transformer_optimizer

    model = Transformer(vocabulary, **sizes)
    optimizer = transformer_optimizer(model.d_model)
    model.compile(optimizer=optimizer, loss=SmoothedCrossentropy())
    return model


def keras_model(peer, sizes, vocabulary, length, masks):
    import keras

    embedding = keras.layers.Embedding(vocabulary, sizes["d_model"])
    source = keras.Input((length,), dtype="int32", name="source_ids")
    target = keras.Input((length,), dtype="int32", name="target_ids")

    class Places(keras.layers.Layer):
        def build(self, shape):
            self.table = self.add_weight((length, sizes["d_model"]))

        def call(self, x):
            return x + keras.ops.cast(self.table, x.dtype)

    places = Places()

    def embed(tokens):
        return keras.layers.Dropout(sizes["dropout"])(places(embedding(tokens)))

    def mask(tokens):
        return keras.ops.not_equal(tokens, 0) if masks else None

    encoder, decoder = STACKS[peer](sizes)
    memory = encoder(embed(source), mask(source))
    x = decoder(embed(target), memory, mask(target), mask(source))

    class Tied(keras.layers.Layer):
        def call(self, x):
            table = keras.ops.cast(embedding.embeddings, x.dtype)
            logits = keras.ops.matmul(x, keras.ops.transpose(table))
            return keras.ops.cast(logits, "float32")

    model = keras.Model({"source_ids": source, "target_ids": target}, Tied()(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-4), loss=loss)
    return model


def keras_stacks(sizes):
    """Post-norm layers of Keras's own parts."""
    import keras

    width, dropout = sizes["d_model"], sizes["dropout"]

    def attend(x, memory, **options):
        heads = sizes["num_heads"]
        layer = keras.layers.MultiHeadAttention(heads, width // heads, dropout=dropout)
        return residual(x, layer(x, memory, **options))

    def residual(x, y):
        y = keras.layers.Dropout(dropout)(y)
        return keras.layers.LayerNormalization(epsilon=1e-5)(x + y)

    def feed(x):
        y = keras.layers.Dense(sizes["d_ff"], activation="relu")(x)
        return residual(x, keras.layers.Dense(width)(y))

    def encoder(x, mask):
        for _ in range(sizes["num_encoder_layers"]):
            x = feed(attend(x, x, query_mask=mask, value_mask=mask))
        return x

    def decoder(x, memory, mask, memory_mask):
        itself = {"query_mask": mask, "value_mask": mask, "use_causal_mask": True}
        across = {"query_mask": mask, "value_mask": memory_mask}
        for _ in range(sizes["num_decoder_layers"]):
            x = attend(x, x, **itself)
            x = feed(attend(x, memory, **across))
        return x

    return encoder, decoder


def keras_hub_stacks(sizes):
    """Layers of KerasHub, post-norm too."""
    from keras_hub.layers import TransformerDecoder, TransformerEncoder

    given = {
        "intermediate_dim": sizes["d_ff"],
        "num_heads": sizes["num_heads"],
        "dropout": sizes["dropout"],
    }

    def encoder(x, mask):
        for _ in range(sizes["num_encoder_layers"]):
            x = TransformerEncoder(**given)(x, padding_mask=mask)
        return x

    def decoder(x, memory, mask, memory_mask):
        padding = {"decoder_padding_mask": mask, "encoder_padding_mask": memory_mask}
        for _ in range(sizes["num_decoder_layers"]):
            x = TransformerDecoder(**given)(x, memory, **padding)
        return x

    return encoder, decoder


STACKS = {"keras": keras_stacks, "keras_hub": keras_hub_stacks}


def torch_peer(peer, sizes, batch, length, vocabulary, precision, masks):
    import torch
    from torch import nn

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_default_device(device)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            width = sizes["d_model"]
            self.embedding = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(length, width)
            self.dropout = nn.Dropout(sizes["dropout"])
            self.transformer = nn.Transformer(
                width,
                sizes["num_heads"],
                sizes["num_encoder_layers"],
                sizes["num_decoder_layers"],
                sizes["d_ff"],
                sizes["dropout"],
                batch_first=True,
            )

        def embed(self, tokens):
            return self.dropout(self.embedding(tokens) + self.places.weight)

        def forward(self, source, target):
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            padding = (source == 0, target == 0) if masks else (None, None)
            x = self.transformer(
                self.embed(source),
                self.embed(target),
                tgt_mask=future,
                tgt_is_causal=True,
                src_key_padding_mask=padding[0],
                tgt_key_padding_mask=padding[1],
                memory_key_padding_mask=padding[0],
            )
            return x @ self.embedding.weight.T

    source, target, labels = [
        torch.from_numpy(each.astype("int64")).to(device)
        for each in ids(batch, length, vocabulary)
    ]
    model = Model()
    run = torch.compile(model) if peer == "torch_compiled" else model
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9)

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            logits = run(source, target)
        value = loss(logits.float().flatten(0, 1), labels.flatten())
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        value.item()

    one, two = torch.randn(2, MATRIX, MATRIX, dtype=getattr(torch, precision))
    return step, lambda: rate(lambda: (one @ two)[0, 0].item())


if __name__ == "__main__":
    main()
