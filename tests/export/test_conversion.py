import logging

import pytest
import tensorflow as tf

from keras_vanilla.export.conversion import save_graph


class Doubling(tf.Module):
    def signatures(self):
        spec = [tf.TensorSpec([3], tf.float32, name="x")]
        double = tf.function(lambda x: {"y": 2 * x}, spec)
        return {"double": double, "again": double}


@pytest.fixture
def said():
    """What TensorFlow says, as talkative as it is in a notebook."""
    records = []
    logger, handler = tf.get_logger(), logging.Handler()
    handler.emit = records.append
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_folder_offers_the_functions_it_is_said_to(tmp_path):
    names = save_graph(Doubling(), tmp_path / "graph")
    loaded = tf.saved_model.load(str(tmp_path / "graph"))
    assert sorted(names) == sorted(loaded.signatures) == ["again", "double"]


def test_temporary_folder_is_not_named(said, tmp_path):
    save_graph(Doubling(), tmp_path / "graph")
    assert said == []
    tf.get_logger().info("as talkative as before")
    assert len(said) == 1


def test_tensorflow_is_as_talkative_as_before_after_an_error(said, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Exception, match="file"):
        save_graph(Doubling(), tmp_path / "file" / "graph")
    assert tf.get_logger().level == logging.INFO
