import io

from keras_vanilla.training.validation import Progress


def test_an_epoch_of_which_only_the_end_was_left_is_reported_too():
    """As it is when a training was killed between an epoch's last step and its end."""
    said = io.StringIO()
    progress = Progress(tokens_per_epoch=700, stream=said)
    progress.set_params({"epochs": 3, "steps": 7})
    logs = {"token_crossentropy": 2.0, "token_accuracy": 0.5}
    progress.on_train_begin()
    progress.on_epoch_begin(1)
    progress.on_epoch_end(1, logs)
    progress.on_epoch_begin(2)
    for batch in range(7):
        progress.on_train_batch_end(batch, logs)
    progress.on_epoch_end(2, logs)
    first, second = said.getvalue().splitlines()
    assert first.startswith("epoch 2/3  [====================] 7/7  loss 2.000")
    assert " 0 tokens/s" in first
    assert second.startswith("epoch 3/3") and "0:00 left" in second
    assert " 0 tokens/s" not in second
