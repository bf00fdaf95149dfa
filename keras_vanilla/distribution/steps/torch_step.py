"""A training step in micro-batches on PyTorch."""

import keras
import torch

from keras_vanilla.distribution.steps.loss_share import (
    divided,
    part_shares,
    update_loss_mean,
)


def train_step(model: keras.Model, data: tuple, micro_batches: int) -> dict:
    """Like `tensorflow_step.train_step`."""
    if micro_batches == 1:
        return keras.Model.train_step(model, data)
    batch = keras.utils.unpack_x_y_sample_weight(data)
    height, size = batch[1].shape[0], batch[1].numel()
    loss, divisor = 0.0, 0.0
    model.zero_grad()
    for index in range(min(micro_batches, height)):
        rows = slice(index, None, micro_batches)
        part = keras.tree.map_structure(
            lambda values, rows=rows: None if values is None else values[rows], batch
        )
        more, share = _add_gradients(model, *part, size)
        loss, divisor = loss + more, divisor + share
    weights = model.trainable_weights
    with torch.no_grad():
        gradients = divided([weight.value.grad for weight in weights], divisor)
        model.optimizer.apply(gradients, weights)
    update_loss_mean(model, *divided([loss], divisor), height)
    return model.get_metrics_result()


def _add_gradients(model, inputs, labels, weights, size):
    """Adds a part's gradients to the weights' gradients; returns loss and share."""
    outputs = model(inputs, training=True)
    loss = model.compute_loss(inputs, labels, outputs, weights, training=True)
    outputs = outputs.detach()
    factor, share = part_shares(model, labels, outputs, weights, size)
    loss = loss * factor
    model.optimizer.scale_loss(loss).backward()
    model.compute_metrics(inputs, labels, outputs, weights)
    return loss.detach(), share
