"""What a model says of a target that is known."""

import numpy as np
from checks import array


def forced_inputs(model, source, target):
    """The inputs of one pair of lists of ids, each with its end."""
    return {
        "source_ids": np.array([source]),
        "target_ids": np.array([[model.start_id, *target[:-1]]]),
    }


def log_probabilities(model, source, target):
    """Float64, of each id of the target."""
    logits = array(model(forced_inputs(model, source, target)), "float64")[0]
    logits[:, model.forbidden_ids] = -np.inf
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits[np.arange(len(target)), target]
