"""The weights of a checkpoint under our names, each read when it is asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

Reader = Callable[[], np.ndarray]


class CheckpointWeights(Mapping[str, np.ndarray]):
    """Our names to arrays that stay in the checkpoint until one is asked for.

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
    """The arrays of a checkpoint, and which of them have a place in our layers.

    Args:
        arrays: mapping of the checkpoint's names to arrays.
        path: what errors call the checkpoint.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], path: object):
        self._arrays, self._path, self._known = arrays, path, set()

    def reader(
        self, name: str, change: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Reader:
        """A function that reads an array, which must be there.

        Args:
            name: str, the checkpoint's.
            change: what makes the array ours, such as `np.transpose`; None for nothing.
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
        """A function that reads an array with several names, which are one array.

        Raises:
            ValueError: if the checkpoint has none of the names, or arrays that differ.
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
        """Takes a name for known, whether it is there or not."""
        self._known.add(name)

    def refuse_others(self, may_be_ignored: Callable[[str], bool]) -> None:
        """Refuses weights that our layers have no place for.

        Raises:
            ValueError: if there is one.
        """
        for name in self._arrays:
            if name not in self._known and not may_be_ignored(name):
                raise ValueError(
                    f"{self._path} has weights {name!r}, for which a vanilla "
                    "Transformer has no place."
                )
