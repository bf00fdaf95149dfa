"""How to train on how much text: the paper's settings, and those for small corpora."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Recipe:
    """The settings of a training that depend on how much text there is.

    Args:
        dropout: float, or None for the preset's own.
        tokens_per_batch: int. Padded target positions of one batch.
        warmup_steps: int. Steps until the highest learning rate.
        epochs: int.
        label_smoothing: float.
    Raises:
        ValueError: if a number is out of its range.
    """

    dropout: float | None
    tokens_per_batch: int
    warmup_steps: int
    epochs: int
    label_smoothing: float = 0.1

    def __post_init__(self):
        for name in ("tokens_per_batch", "warmup_steps", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be at least 1. Received: {getattr(self, name)}"
                )
        for name in ("dropout", "label_smoothing"):
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise ValueError(
                    f"`{name}` must be at least 0 and below 1. Received: "
                    f"{getattr(self, name)}"
                )

    def with_choices(self, **choices):
        """This recipe with every choice that is not None in its place."""
        made = {name: value for name, value in choices.items() if value is not None}
        return replace(self, **made)

    def __str__(self):
        dropout = "the preset's" if self.dropout is None else self.dropout
        return (
            f"dropout {dropout}, label smoothing {self.label_smoothing}, "
            f"{self.tokens_per_batch:,} tokens a batch, "
            f"{self.warmup_steps:,} warm-up steps, {self.epochs} epochs"
        )


# Section 5 of the paper; 20 epochs of its corpus are its 100,000 steps.
PAPER = Recipe(None, tokens_per_batch=25_000, warmup_steps=4000, epochs=20)

# Pairs below which a recipe holds. The fewer, the smaller a batch, so that an epoch has
# steps enough, and the sooner the learning rate is at its height.
BY_PAIRS = (
    (20_000, Recipe(0.2, tokens_per_batch=1024, warmup_steps=1000, epochs=40)),
    (100_000, Recipe(None, tokens_per_batch=2048, warmup_steps=1000, epochs=20)),
    (1_000_000, Recipe(None, tokens_per_batch=4096, warmup_steps=2000, epochs=15)),
    (float("inf"), Recipe(None, tokens_per_batch=8192, warmup_steps=4000, epochs=10)),
)


def recipe_for(pairs, name="auto"):
    """The recipe for a corpus.

    | pairs | dropout | tokens a batch | warm-up steps | epochs |
    | --- | --- | --- | --- | --- |
    | below 20,000 | 0.2 | 1,024 | 1,000 | 40 |
    | below 100,000 | the preset's | 2,048 | 1,000 | 20 |
    | below 1,000,000 | the preset's | 4,096 | 2,000 | 15 |
    | more | the preset's | 8,192 | 4,000 | 10 |
    | "paper" | the preset's | 25,000 | 4,000 | 20 |

    Args:
        pairs: int. Number of pairs to train on.
        name: "auto" or "paper".
    Returns:
        Recipe.
    Raises:
        ValueError: if there is no recipe of that name.
    Source: Vaswani et al. 2017, section 5; Sennrich and Zhang 2019 for small corpora.
    """
    if name == "paper":
        return PAPER
    if name != "auto":
        raise ValueError(f"`recipe` must be 'auto' or 'paper'. Received: {name!r}")
    return next(recipe for limit, recipe in BY_PAIRS if pairs < limit)
