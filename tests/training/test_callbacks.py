import keras
import numpy as np

from keras_vanilla.training import AverageCheckpoints


def linear_model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    return model


def test_average_is_the_mean_of_the_last_epochs_weights():
    model = linear_model()
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(model.get_weights())
    )
    average = AverageCheckpoints(last=3)
    x, y = np.random.default_rng(0).normal(size=(2, 8, 3))
    model.fit(x[:, :2], y, epochs=5, callbacks=[record, average], verbose=0)
    for index, values in enumerate(average.weights()):
        expected = np.mean([weights[index] for weights in seen[2:]], axis=0)
        np.testing.assert_allclose(values, expected, rtol=1e-6)
        assert values.dtype == "float32"
    assert not np.allclose(average.weights()[0], model.get_weights()[0])


def test_fewer_epochs_than_to_average_are_all_averaged():
    model = linear_model()
    average = AverageCheckpoints(last=5)
    model.fit(np.ones((2, 2)), np.ones((2, 3)), callbacks=[average], verbose=0)
    np.testing.assert_allclose(average.weights()[0], model.get_weights()[0])
