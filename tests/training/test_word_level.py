"""The loss of a student that learns its teacher's probabilities of each token."""

import keras
import numpy as np
import pytest
from checks import randomize
from tiers import in_full

from keras_vanilla import Transformer
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.models import Ensemble
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import (
    SmoothedCrossentropy,
    WordLevelCrossentropy,
    compile_for_training,
    train_translator,
)
from keras_vanilla.training.word_level import crossentropy

V = 11
SIZES = {
    "source_vocabulary_size": V,
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 13,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "dropout": 0.0,
}
INPUTS = {
    "source_ids": np.array([[5, 7, 3], [4, 3, 0], [9, 3, 0]]),
    "target_ids": np.array([[2, 6, 8], [2, 9, 0], [2, 10, 4]]),
}
LABELS = np.array([[6, 8, 3], [9, 3, 0], [10, 4, 3]])
WEIGHTS = (LABELS != 0).astype("float32")


def transformer(seed, **settings):
    return randomize(Transformer(**{**SIZES, **settings}), seed)


def log_softmax(logits):
    logits = np.asarray(keras.ops.convert_to_numpy(logits), "float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def reference(taught, logits, weight, smoothing):
    """The loss by its formula, in float64."""
    log_p = log_softmax(logits)
    q = np.eye(V)[LABELS] * (1 - smoothing) + smoothing / V
    mixed = (1 - weight) * q + weight * np.exp(log_softmax(taught))
    losses = -(mixed * log_p).sum(-1)
    return (losses * WEIGHTS).sum() / WEIGHTS.sum()


def compiled(model, loss, learning_rate=0.0, **settings):
    settings = {"jit_compile": keras.backend.backend() == "jax", **settings}
    model.compile(keras.optimizers.SGD(learning_rate), loss, **settings)
    return model


@pytest.mark.parametrize("weight", [0.3, *in_full(1.0)])
@pytest.mark.parametrize("members", [2, *in_full(1)])
def test_a_step_trains_on_the_mixture(weight, members):
    student = transformer(0)
    teachers = [transformer(seed, d_model=12) for seed in range(1, members + 1)]
    teacher = teachers[0] if members == 1 else Ensemble(teachers)
    expected = reference(teacher(INPUTS), student(INPUTS), weight, 0.1)
    compiled(student, WordLevelCrossentropy(teacher, weight))
    loss = student.train_on_batch(INPUTS, LABELS, WEIGHTS)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_evaluation_is_the_smoothed_crossentropy_alone():
    student, teacher = transformer(0), transformer(1)
    loss = compiled(student, WordLevelCrossentropy(teacher, 0.5)).evaluate(
        INPUTS, LABELS, sample_weight=WEIGHTS, verbose=0
    )
    expected = SmoothedCrossentropy()(LABELS, student(INPUTS), WEIGHTS)
    assert loss == pytest.approx(float(expected), rel=1e-5)


def test_the_gradient_is_the_slope():
    rng = np.random.default_rng(0)
    taught, logits, direction = rng.normal(size=(3, 2, 3, V)) * 3

    def value(logits):
        return -(np.exp(log_softmax(taught)) * log_softmax(logits)).sum()

    tf = pytest.importorskip("tensorflow")
    variable = tf.Variable(logits.astype("float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(crossentropy(taught, variable))
    assert float(loss) == pytest.approx(value(logits), rel=1e-5)
    slope = (value(logits + 1e-5 * direction) - value(logits - 1e-5 * direction)) / 2e-5
    gradient = tape.gradient(loss, variable).numpy()
    assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-4)


@pytest.mark.full
def test_micro_batches_train_the_same_weights():
    trained = []
    for micro_batches in (1, 2):
        student = transformer(0)
        loss = WordLevelCrossentropy(transformer(1), 0.5)
        compiled(student, loss, 0.5, micro_batches=micro_batches)
        student.train_on_batch(INPUTS, LABELS, WEIGHTS)
        trained.append(student.get_weights())
    moved = 0.0
    before = transformer(0).get_weights()
    for one, two, old in zip(*trained, before, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
        moved = max(moved, np.abs(one - old).max())
    assert moved > 0.01


def test_the_teacher_stays_as_it_is_and_is_not_part_of_the_student(tmp_path):
    student, teacher = transformer(0), transformer(1, dropout=0.5)
    before, names = teacher.get_weights(), [w.path for w in student.weights]
    compiled(student, WordLevelCrossentropy(teacher, 0.5), 0.5)
    first = student.train_on_batch(INPUTS, LABELS, WEIGHTS)
    assert first == pytest.approx(  # its dropout is off
        reference(teacher(INPUTS), transformer(0)(INPUTS), 0.5, 0.1), rel=1e-5
    )
    for weight, old in zip(teacher.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old)
    assert [weight.path for weight in student.weights] == names
    student.save(tmp_path / "student.keras")
    with pytest.warns(UserWarning, match="saved without its teacher"):
        loaded = keras.saving.load_model(tmp_path / "student.keras")
    assert len(loaded.weights) == len(names)
    with loaded.loss.seeing(INPUTS):  # as in a training step
        received = loaded.loss(LABELS, loaded(INPUTS), WEIGHTS)
    expected = SmoothedCrossentropy()(LABELS, loaded(INPUTS), WEIGHTS)
    assert float(received) == pytest.approx(float(expected), rel=1e-5)


def test_another_vocabulary_is_refused():
    student = compiled(
        transformer(0),
        WordLevelCrossentropy(transformer(1, source_vocabulary_size=13), 0.5),
    )
    with pytest.raises(ValueError, match="Received: 13 and 11 ids"):
        student.train_on_batch(INPUTS, LABELS, WEIGHTS)


@pytest.mark.parametrize("weight", [-0.1, 1.1, "half"])
def test_a_weight_is_a_share(weight):
    with pytest.raises(ValueError, match="`weight` must be"):
        WordLevelCrossentropy(None, weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"word_level": 0.5}, "no teacher and word_level=0.5"),
        ({"teacher": True}, "a teacher and word_level=0"),
        ({"teacher": True, "word_level": 0.5, "r_drop": 5.0}, "two losses"),
    ],
)
def test_teacher_and_weight_go_together(settings, message):
    model = transformer(0)
    if "teacher" in settings:
        settings = {**settings, "teacher": transformer(1)}
    with pytest.raises(ValueError, match=message):
        compile_for_training(model, **settings)


def test_a_teacher_with_another_tokenizer_is_refused(
    trained_translator, unseen_sentences, tmp_path
):
    corpus = ParallelCorpus(unseen_sentences, unseen_sentences)
    other = Tokenizer.train(unseen_sentences, vocabulary_size=290)
    with pytest.raises(ValueError, match="must have one tokenizer for `word_level`"):
        train_translator(
            corpus,
            tmp_path / "out",
            tokenizer=other,
            teacher=trained_translator,
            word_level=0.5,
        )
