"""A training step in micro-batches on PyTorch."""

import keras
import torch

from keras_vanilla.distribution.steps.loss_share import (
    divisor,
    share,
    update_loss_mean,
)


def train_step(model: keras.Model, data: tuple, micro_batches: int) -> dict:
    """Like `tensorflow_step.train_step`."""
    if micro_batches == 1:
        return keras.Model.train_step(model, data)
    batch = keras.utils.unpack_x_y_sample_weight(data)
    height = batch[1].shape[0]
    batch_divisor = divisor(model, *batch[1:])
    total = 0.0
    model.zero_grad()
    for index in range(min(micro_batches, height)):
        rows = slice(index, None, micro_batches)
        part = keras.tree.map_structure(
            lambda values, rows=rows: None if values is None else values[rows], batch
        )
        total = total + _add_gradients(model, *part, batch_divisor)
    weights = model.trainable_weights
    with torch.no_grad():
        model.optimizer.apply([weight.value.grad for weight in weights], weights)
    update_loss_mean(model, total, height)
    return model.get_metrics_result()


def _add_gradients(model, inputs, labels, weights, batch_divisor):
    """Adds a part's gradients to the weights' gradients; returns its loss share."""
    outputs = model(inputs, training=True)
    loss = model.compute_loss(inputs, labels, outputs, weights, training=True)
    loss = loss * share(divisor(model, labels, weights), batch_divisor)
    model.optimizer.scale_loss(loss).backward()
    model.compute_metrics(inputs, labels, outputs.detach(), weights)
    return loss.detach()
