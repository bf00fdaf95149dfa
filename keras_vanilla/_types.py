"""Types that are used in several files."""

import os
from typing import Any, TypeAlias

# Tensors of Keras's backends and NumPy arrays have no common class.
Tensor: TypeAlias = Any
PathLike: TypeAlias = str | os.PathLike
