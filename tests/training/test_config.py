import re

import pytest

from keras_vanilla.training.config import PAPER, Recipe, recipe_for


def test_the_paper_s_recipe_is_the_paper_s():
    assert recipe_for(1, "paper") == PAPER
    assert (PAPER.tokens_per_batch, PAPER.warmup_steps) == (25_000, 4000)
    assert (PAPER.dropout, PAPER.label_smoothing) == (None, 0.1)


@pytest.mark.parametrize("line", range(4))
def test_the_table_in_the_docstring_is_the_recipes(line):
    rows = re.findall(r"^ +\| (below|more)(.*)\|$", recipe_for.__doc__, re.MULTILINE)
    columns = [column.replace(",", "").strip() for column in rows[line][1].split("|")]
    limit = int(columns[0]) if columns[0] else 10**9
    recipe = recipe_for(limit - 1)
    dropout = "the preset's" if recipe.dropout is None else str(recipe.dropout)
    numbers = recipe.tokens_per_batch, recipe.warmup_steps, recipe.epochs
    assert columns[1:] == [dropout, *map(str, numbers)]
    assert limit == 10**9 or recipe_for(limit) != recipe


def test_less_text_gets_more_dropout_and_more_epochs():
    recipes = [recipe_for(pairs) for pairs in (1000, 50_000, 500_000)]
    assert [recipe.dropout or 0.1 for recipe in recipes] == [0.2, 0.1, 0.1]
    assert recipes[0].epochs > recipes[1].epochs > recipes[2].epochs


def test_choices_replace_what_they_name_and_none_replaces_nothing():
    recipe = Recipe(0.2, tokens_per_batch=10, warmup_steps=3, epochs=2)
    changed = recipe.with_choices(epochs=5, dropout=0.0, warmup_steps=None)
    assert changed == Recipe(0.0, tokens_per_batch=10, warmup_steps=3, epochs=5)


@pytest.mark.parametrize(
    "choice",
    [
        {"epochs": 0},
        {"tokens_per_batch": 0},
        {"warmup_steps": -1},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"label_smoothing": float("nan")},
    ],
    ids=str,
)
def test_a_number_out_of_its_range_is_refused(choice):
    ((name, value),) = choice.items()
    with pytest.raises(ValueError, match=f"`{name}` must be .* Received: {value}"):
        PAPER.with_choices(**choice)


def test_an_unknown_recipe_names_the_choices():
    with pytest.raises(ValueError, match="'auto' or 'paper'. Received: 'best'"):
        recipe_for(10, "best")
