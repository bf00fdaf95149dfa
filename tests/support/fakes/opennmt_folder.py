"""Models of OpenNMT-py, made with CTranslate2's own specs, and Argos packages."""

import json
import zipfile

import numpy as np
import sentencepiece
from ctranslate2.specs import TransformerSpec
from peer_models import learn
from word_reversal import dutch, english_sentences

D_MODEL, HEADS, D_FF, DEPTHS, LENGTH = 24, 4, 37, (1, 2), 90
SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]
METADATA = {"type": "translate", "from_code": "en", "to_code": "nl"}


def learn_model():
    """The bytes of one SentencePiece model for both languages."""
    english = english_sentences(400, seed=0)
    return learn(english + [dutch(line) for line in english], vocab_size=60)


def tokens_of(model):
    """OpenNMT-py's vocabulary: other special tokens, another order, not all pieces."""
    peer = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [peer.id_to_piece(id_) for id_ in range(peer.get_piece_size())]
    pieces = [piece for piece in pieces if piece not in SPECIAL]
    return [*SPECIAL, *sorted(pieces)[3:], "\u2581extra"]


def make_spec(tokens, seed=0, **options):
    """A `TransformerSpec` of random weights; options as of its `from_config`."""
    options = {"pre_norm": True, **options}
    spec = TransformerSpec.from_config(DEPTHS, HEADS, **options)
    draw = np.random.default_rng(seed)
    for side in (spec.encoder, spec.decoder):
        table = side.embeddings[0] if side is spec.encoder else side.embeddings
        table.weight = _draw(draw, len(tokens), D_MODEL)
        if hasattr(side, "position_encodings"):
            side.position_encodings.encodings = positions()
        if hasattr(side, "layer_norm"):
            _set_norm(draw, side.layer_norm)
        if hasattr(side, "layernorm_embedding"):
            _set_norm(draw, side.layernorm_embedding)
        for layer in side.layer:
            _set_layer(draw, layer)
    _set_linear(draw, spec.decoder.projection, len(tokens), D_MODEL)
    never = [tokens.index(token) for token in SPECIAL[:3] if token in tokens]
    spec.decoder.projection.bias[never] = -50  # as a training makes them
    spec.decoder.embeddings.weight = spec.encoder.embeddings[0].weight
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    return spec


def positions():
    """As OpenNMT-py computes them: sines and cosines in turn."""
    angles = np.arange(LENGTH, dtype="float32")[:, None] * np.exp(
        np.arange(0, D_MODEL, 2, dtype="float32") * np.float32(-np.log(1e4) / D_MODEL)
    )
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(LENGTH, D_MODEL)


def save(spec, folder, quantize="float32"):
    folder.mkdir(parents=True)
    spec.validate()
    spec.optimize(quantization=quantize)
    spec.save(str(folder))


def write_package(folder, spec, model, quantize="float32"):
    """An Argos package's folder."""
    save(spec, folder / "model", quantize)
    (folder / "sentencepiece.model").write_bytes(model)
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    (folder / "stanza").mkdir()
    (folder / "stanza" / "resources.json").write_text("not needed")


def zipped(folder, path):
    """The package as one file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder.parent))
    return path


def _set_layer(draw, layer):
    attentions = [layer.self_attention]
    if hasattr(layer, "attention"):
        attentions.append(layer.attention)
    for attention in attentions:
        _set_norm(draw, attention.layer_norm)
        rows = {2: [3, 1], 3: [1, 2, 1]}[len(attention.linear)]
        for linear, count in zip(attention.linear, rows, strict=True):
            _set_linear(draw, linear, count * D_MODEL, D_MODEL)
        if hasattr(attention, "relative_position_keys"):
            attention.relative_position_keys = _draw(draw, 5, D_MODEL // HEADS)
            attention.relative_position_values = _draw(draw, 5, D_MODEL // HEADS)
    _set_norm(draw, layer.ffn.layer_norm)
    _set_linear(draw, layer.ffn.linear_0, D_FF, D_MODEL)
    _set_linear(draw, layer.ffn.linear_1, D_MODEL, D_FF)
    if hasattr(layer.ffn, "linear_0_noact"):
        _set_linear(draw, layer.ffn.linear_0_noact, D_FF, D_MODEL)


def _set_linear(draw, spec, rows, columns):
    spec.weight, spec.bias = _draw(draw, rows, columns), _draw(draw, rows)


def _set_norm(draw, spec):
    spec.gamma = 1 + _draw(draw, D_MODEL)
    if hasattr(spec, "beta"):
        spec.beta = _draw(draw, D_MODEL)


def _draw(draw, *shape):
    return draw.normal(0, 0.3, shape).astype("float32")
