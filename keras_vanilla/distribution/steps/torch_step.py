"""A training step in micro-batches on PyTorch."""

import keras
import torch


def train_step(model, data, micro_batches):
    """As `tensorflow_step.train_step`."""
    if micro_batches == 1:
        return keras.Model.train_step(model, data)
    height = data[1].shape[0]
    total = 0.0
    model.zero_grad()
    for number in range(min(micro_batches, height)):
        part = keras.tree.map_structure(
            lambda rows, first=number: rows[first::micro_batches], data
        )
        total = total + _add_gradients(model, *part)
    weights = model.trainable_weights
    with torch.no_grad():
        model.optimizer.apply([weight.value.grad for weight in weights], weights)
    model._loss_tracker.update_state(total, sample_weight=height)
    return model.get_metrics_result()


def _add_gradients(model, inputs, labels, weights):
    """Leaves gradients with the weights; metrics are updated; the loss is returned."""
    logits = model(inputs, training=True)
    loss = model.compute_loss(inputs, labels, logits, weights, training=True)
    model.optimizer.scale_loss(loss).backward()
    model.compute_metrics(inputs, labels, logits.detach(), weights)
    return loss.detach()
