"""CTranslate2 with the weights and the vocabulary of one of our translators."""

from pathlib import Path

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec


def write(translator, folder, quantize=None):
    """Writes a translator as a CTranslate2 model folder, which must not exist.

    Args:
        translator: Translator; its model as the paper has it, post-norm with ReLU.
        folder: path.
        quantize: "int8", or None for float32.
    """
    model = translator.in_float32().model
    if model.normalize_first or model.activation != "relu":
        raise ValueError("Only post-norm with ReLU is converted")
    depths = model.num_encoder_layers, model.num_decoder_layers
    spec = TransformerSpec.from_config(depths, model.num_heads, pre_norm=False)
    _set_stack(spec.encoder, model, model.source_embedding, model.encoder_layers)
    _set_stack(spec.decoder, model, model.target_embedding, model.decoder_layers)
    _set_projection(spec.decoder.projection, model)
    _set_vocabularies(spec, translator.tokenizer)
    spec.config.layer_norm_epsilon = model.layer_norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantize or "float32")
    Path(folder).mkdir()
    spec.save(str(folder))


def open_runtime(folder, quantize=None, threads=1):
    """The `ctranslate2.Translator` of a written folder."""
    return ctranslate2.Translator(
        str(folder),
        compute_type=quantize or "float32",
        inter_threads=1,
        intra_threads=threads,
    )


def translate_ids(runtime, tokenizer, source, max_length):
    """The target ids of one source by greedy search; both end with `end_id`."""
    pieces = tokenizer.source_pieces(source[:-1])
    result = runtime.translate_batch(
        [pieces], beam_size=1, max_decoding_length=max_length, return_end_token=True
    )
    pieces = tokenizer.target_pieces(range(tokenizer.target_vocabulary_size))
    id_of = {piece: id_ for id_, piece in enumerate(pieces)}
    return [id_of[piece] for piece in result[0].hypotheses[0]]


def _set_stack(spec, model, embedding, layers):
    embeddings = spec.embeddings
    if isinstance(embeddings, list):
        (embeddings,) = embeddings
    embeddings.weight = np.asarray(embedding.embeddings)
    spec.scale_embeddings = model.scale_embeddings
    nothing = np.zeros((1, model.max_length, model.d_model), "float32")
    spec.position_encodings.encodings = np.asarray(model.positions(nothing))[0]
    for layer_spec, layer in zip(spec.layer, layers, strict=True):
        _set_layer(layer_spec, layer)


def _set_layer(spec, layer):
    attention, fed = layer.self_attention, layer.feed_forward
    queries = attention.query_dense, attention.key_dense, attention.value_dense
    _set_linears(spec.self_attention.linear, queries, (attention.output_dense,))
    _set_norm(spec.self_attention.layer_norm, layer.self_attention_residual)
    if hasattr(spec, "attention"):
        attention = layer.cross_attention
        memory = attention.key_dense, attention.value_dense
        projections = (attention.query_dense,), memory, (attention.output_dense,)
        _set_linears(spec.attention.linear, *projections)
        _set_norm(spec.attention.layer_norm, layer.cross_attention_residual)
    _set_linears([spec.ffn.linear_0, spec.ffn.linear_1], (fed.inner,), (fed.outer,))
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_residual)


def _set_linears(specs, *projections):
    """Several projections of one input are one matrix, one below the other."""
    for spec, together in zip(specs, projections, strict=True):
        biases = [np.asarray(each.bias).ravel() for each in together]
        matrices = [
            np.asarray(each.kernel).reshape(-1, bias.size).T
            for each, bias in zip(together, biases, strict=True)
        ]
        spec.weight, spec.bias = np.concatenate(matrices), np.concatenate(biases)


def _set_norm(spec, residual):
    spec.gamma = np.asarray(residual.norm.gamma)
    spec.beta = np.asarray(residual.norm.beta)


def _set_projection(spec, model):
    spec.weight = np.asarray(model.target_embedding.embeddings)
    if model.logits_bias is not None:
        spec.bias = np.asarray(model.logits_bias.bias)


def _set_vocabularies(spec, tokenizer):
    size = tokenizer.vocabulary_size
    spec.register_source_vocabulary(tokenizer.source_pieces(range(size)))
    target = tokenizer.target_pieces(range(tokenizer.target_vocabulary_size))
    spec.register_target_vocabulary(target)
    spec.config.unk_token = target[tokenizer.unknown_id]
    spec.config.bos_token = target[tokenizer.start_id]
    spec.config.eos_token = target[tokenizer.end_id]
    spec.config.decoder_start_token = target[tokenizer.start_id]
    spec.config.add_source_eos = True
