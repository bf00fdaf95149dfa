"""The weights of a checkpoint under our names, read on demand."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

Reader = Callable[[], np.ndarray]


class CheckpointWeights(Mapping[str, np.ndarray]):
    """Maps our names to arrays that are read from the checkpoint on demand.

    Args:
        readers: dict of our name -> function that returns the array.
    """

    def __init__(self, readers: Mapping[str, Reader]):
        self._readers = dict(readers)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


class NamedArrays:
    """The arrays of a checkpoint, with a record of those that our layers use.

    Args:
        arrays: mapping of the checkpoint's names to arrays.
        path: the checkpoint's name in errors.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], path: object):
        self._arrays, self._path, self._known = arrays, path, set()

    def reader(
        self, name: str, change: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Reader:
        """Returns a function that reads a required array.

        Args:
            name: str. The array's name in the checkpoint.
            change: function that converts the array to ours, such as `np.transpose`, or
                None.
        Raises:
            ValueError: if the checkpoint has no such array.
        """
        if name not in self._arrays:
            raise ValueError(f"{self._path} has no weights {name!r}.")
        self._known.add(name)
        return lambda: (
            change(self._arrays[name]) if change is not None else self._arrays[name]
        )

    def one_of(self, names: Sequence[str]) -> Reader:
        """Returns a function that reads an array with several possible names.

        Raises:
            ValueError: if the checkpoint has none of the names, or different arrays
                under them.
        """
        present = [name for name in names if name in self._arrays]
        if not present:
            raise ValueError(f"{self._path} has no weights {names[0]!r}.")
        first, *others = present
        for name in others:
            if not np.array_equal(self._arrays[first], self._arrays[name]):
                raise ValueError(
                    f"{self._path} has different weights {first!r} and {name!r}, which "
                    "its configuration calls the same."
                )
        self._known.update(present)
        return self.reader(first)

    def ignore(self, name: str) -> None:
        """Marks a name as known, even if the checkpoint does not have it."""
        self._known.add(name)

    def refuse_others(self, may_be_ignored: Callable[[str], bool]) -> None:
        """Refuses weights that our layers do not have.

        Raises:
            ValueError: if there is one.
        """
        for name in self._arrays:
            if name not in self._known and not may_be_ignored(name):
                raise ValueError(
                    f"{self._path} has weights {name!r}, for which a vanilla "
                    "Transformer has no place."
                )
