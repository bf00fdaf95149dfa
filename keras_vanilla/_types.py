"""Types that several files name."""

import os
from typing import Any, TypeAlias

# Tensors of Keras's backends, and NumPy arrays, have no class in common.
Tensor: TypeAlias = Any
PathLike: TypeAlias = str | os.PathLike
