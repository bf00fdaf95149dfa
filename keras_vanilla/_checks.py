"""Arguments that are numbers."""

import numpy as np


def at_least(least: int, **arguments):
    """Refuses what is not an integer from `least` on, by its name.

    Raises:
        ValueError: if one is not.
    """
    for name, value in arguments.items():
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(
                f"`{name}` must be an integer of at least {least}. Received: {value}"
            )
