"""A TensorFlow module's graph and variables in a folder."""

import logging

import tensorflow as tf


def save_graph(module, folder) -> list[str]:
    """Writes a SavedModel, and returns the names of its functions.

    In a notebook TensorFlow would say where to, a folder that is gone a moment later.

    Args:
        module: tf.Module with `signatures()`, functions by name.
        folder: path of a folder that does not exist yet, or is empty.
    """
    signatures = module.signatures()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        tf.saved_model.save(module, str(folder), signatures=signatures)
    finally:
        logger.setLevel(level)
    return list(signatures)
