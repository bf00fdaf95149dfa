import json

import keras
import numpy as np
import pytest

from keras_vanilla.training import (
    Cooldown,
    TransformerSchedule,
    transformer_optimizer,
)
from keras_vanilla.training.schedule import decay_after_short_warmup


def paper_rate(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@pytest.mark.parametrize("updates", [0, 1, 98, 99, 100, 5000])
def test_rate_is_the_papers_with_steps_counted_from_one(updates):
    rate = float(TransformerSchedule(d_model=320, warmup_steps=100)(updates))
    assert rate == pytest.approx(paper_rate(updates + 1, 320, 100), rel=1e-6)


def test_rate_is_highest_at_the_end_of_the_warm_up():
    schedule = TransformerSchedule(d_model=64, warmup_steps=37)
    rates = [float(schedule(step)) for step in range(120)]
    assert int(np.argmax(rates)) + 1 == 37


def test_short_warmup_joins_rate_of_paper():
    """It rises to the rate of step 100 in 20 steps, and is the paper's from there."""
    schedule = TransformerSchedule(d_model=320, warmup_steps=20, decay_from=100)
    peak = paper_rate(100, 320, 100)
    for step in range(1, 300):
        rate = float(schedule(step - 1))
        expected = (
            min(step / 20, 1) * peak if step < 100 else paper_rate(step, 320, 100)
        )
        assert rate == pytest.approx(expected, rel=1e-6)
    again = TransformerSchedule.from_config(schedule.get_config())
    assert float(again(49)) == float(schedule(49))


@pytest.mark.parametrize("short", [1, 70, 999, 1000])
@pytest.mark.parametrize("d_model", [64, 256, 512])
def test_peak_of_short_warmup_is_lower_by_root_of_its_share(d_model, short):
    """But twice as high in a quarter of the width of preset small."""
    decay_from = decay_after_short_warmup(d_model, 1000, short)
    peak = float(TransformerSchedule(d_model, short, decay_from)(short - 1))
    factor = (short / 1000) ** 0.5 * (2 if d_model == 64 else 1)
    expected = paper_rate(1000, d_model, 1000) * min(factor, 1)
    assert peak == pytest.approx(expected, rel=1e-3)


def test_adam_has_the_papers_constants_and_survives_its_config():
    optimizer = transformer_optimizer(64, warmup_steps=10)
    again = keras.optimizers.Adam.from_config(optimizer.get_config())
    assert (again.beta_1, again.beta_2, again.epsilon) == (0.9, 0.98, 1e-9)
    assert float(again.learning_rate) == pytest.approx(paper_rate(1, 64, 10), rel=1e-6)


def test_clipping_and_weight_decay_are_off_by_default():
    papers = transformer_optimizer(64).get_config()
    plain = keras.optimizers.Adam(0.1).get_config()
    for name in ("weight_decay", "clipnorm", "global_clipnorm", "clipvalue"):
        assert papers[name] == plain[name] is None
    given = transformer_optimizer(64, clip_norm=0.5, weight_decay=0.01).get_config()
    assert (given["global_clipnorm"], given["weight_decay"]) == (0.5, 0.01)
    changed = {name for name in papers if papers[name] != given[name]}
    assert changed - {"name"} == {"global_clipnorm", "weight_decay"}


@pytest.mark.parametrize("updates", [0, 9, 60, 61, 75, 99, 100, 200])
def test_cooldown_is_linear(updates):
    schedule = Cooldown(TransformerSchedule(16, 10), total_steps=100, cooldown_steps=40)
    whole = paper_rate(updates + 1, 16, 10)
    expected = np.interp(updates, [60, 100], [whole, 0.0])
    assert float(schedule(updates)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "before", [0.25, TransformerSchedule(16, 10)], ids=["constant", "papers"]
)
def test_cooldown_survives_config_and_file(before):
    schedule = Cooldown(before, total_steps=20, cooldown_steps=8)
    saved = keras.saving.serialize_keras_object(schedule)
    for again in (
        Cooldown.from_config(schedule.get_config()),
        keras.saving.deserialize_keras_object(json.loads(json.dumps(saved))),
    ):
        rates = [(float(schedule(step)), float(again(step))) for step in range(22)]
        assert all(one == other for one, other in rates) and rates[20] == (0.0, 0.0)


def test_optimizer_has_cooldown_if_given():
    optimizer = transformer_optimizer(64, 10, total_steps=50, cooldown_steps=20)
    rates = []
    for step in (29, 40):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    papers = paper_rate(30, 64, 10), paper_rate(41, 64, 10)
    assert rates == pytest.approx([papers[0], papers[1] / 2], rel=1e-6)
    again = type(optimizer).from_config(optimizer.get_config())
    assert float(again.learning_rate) == pytest.approx(paper_rate(1, 64, 10), rel=1e-6)
