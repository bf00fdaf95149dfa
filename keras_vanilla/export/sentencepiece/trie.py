"""A trie of byte strings, stored as arrays for a graph."""

import itertools

import numpy as np
from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor

BLOCK = 256  # slots; the children of a node are in one block
CLOSE_BELOW = 8  # free slots; filling a block completely takes too many tries
OPEN_BLOCKS = 16  # tried for a node of several children, the newest ones
FREE = 255  # label of a slot without a node; UTF-8 never has this byte


class ByteTrie:
    """A double array: the child of node n for byte c is in slot `base[n] ^ c`.

    The root is in slot 0. If the label of a slot is not c, n has no child for c. The
    texts must not contain the byte 255.

    Args:
        base: int array (slots,), in complete blocks of 256.
        label: int array (slots,).
        value: int array (slots,). The value of the key that ends there, or `missing`.
        missing: int. The value of a slot where no key ends.
    Source: Aoe 1989, "An Efficient Digital Search Algorithm by Using a Double-Array
        Structure"; in the format of darts-clone, which SentencePiece stores.
    """

    def __init__(
        self,
        base: np.ndarray,
        label: np.ndarray,
        value: np.ndarray,
        missing: int,
    ):
        self.dead = len(base)
        # From the dead slot every byte leads to a free slot, and from there back.
        self.base = np.append(base, np.full(BLOCK, self.dead)).astype("int32")
        self.label = np.append(label, np.full(BLOCK, FREE)).astype("uint8")
        self.value = narrow(np.append(value, np.full(BLOCK, missing)))

    @classmethod
    def build(cls, values: dict[bytes, int], missing: int) -> "ByteTrie":
        """Builds the trie of keys, without the bytes 0 and 255, and their values."""
        children = _children(values)
        slots, slot_of, base_of = _Slots(), {b"": 0}, {}
        # Wide nodes first, while there is room; nodes with one child fill the gaps.
        for prefix in sorted(children, key=lambda prefix: -len(children[prefix])):
            base_of[prefix] = slots.place(children[prefix])
            for byte in children[prefix]:
                slot_of[prefix + bytes([byte])] = base_of[prefix] ^ byte
        base = np.full(slots.size, slots.size)
        label, value = np.full(slots.size, FREE), np.full(slots.size, missing)
        for prefix, slot in slot_of.items():
            base[slot] = base_of.get(prefix, slots.size)
            label[slot] = prefix[-1] if prefix else FREE
            value[slot] = values.get(prefix, missing)
        return cls(base, label, value, missing)

    def longest(self) -> int:
        """The number of bytes of the longest key."""
        slots, bytes_ = np.array([0]), np.arange(FREE)
        for depth in itertools.count():
            children = self.base[slots][:, None] ^ bytes_
            slots = np.unique(children[self.label[children] == bytes_])
            if not slots.size:
                return depth

    def child(self, slots: Tensor, bytes_: Tensor) -> Tensor:
        """Returns the children's slots for bytes, int32 of the slots' shape or (1,)."""
        gather = current_operators().gather
        children = ops.bitwise_xor(gather(self.base, slots), bytes_)
        labels = ops.cast(gather(self.label, children), "int32")
        return ops.where(labels == bytes_, children, self.dead)

    def walk(self, text_bytes: Tensor, longest: int, least: int = 1) -> Tensor:
        """Returns the slots reached from each position of a text.

        Args:
            text_bytes: int32 tensor (n,).
            longest: int. Maximum number of bytes read from each position.
            least: int. Minimum number of bytes.
        Returns:
            Int32 tensor (d, n). Row r has the slots after r + 1 bytes. Either d is
            `longest`, or no walk continues after d bytes.
        """
        operators = current_operators()
        (size,) = ops.shape(text_bytes)
        following = ops.pad(text_bytes, [[0, longest]])

        def step(depth, slots, walked):
            slots = self.child(slots, ops.slice(following, [depth], [size]))
            row = ops.expand_dims(slots, 0)
            return depth + 1, slots, operators.slice_update(walked, [depth, 0], row)

        depth, _, walked = ops.while_loop(
            lambda depth, slots, _: (depth < longest) & ops.any(slots != self.dead),
            step,
            # No key ends at the root, so its slot, 0, also fills the other rows.
            (0, *(ops.zeros(shape, "int32") for shape in [(size,), (longest, size)])),
        )
        depth = operators.size_for(ops.maximum(depth, least), longest)
        return ops.slice(walked, [0, 0], [depth, size])

    def values(self, slots: Tensor) -> Tensor:
        """Returns the int32 values of slots."""
        return ops.cast(current_operators().gather(self.value, slots), "int32")


def narrow(array: np.ndarray) -> np.ndarray:
    """Casts integers to the smallest sufficient type that GATHER supports."""
    array = np.asarray(array)
    for name in ("uint8", "int16"):
        limits = np.iinfo(name)
        if limits.min <= array.min() and array.max() <= limits.max:
            return array.astype(name)
    return array.astype("int32")


def _children(strings):
    """Returns the bytes that follow each prefix of the keys."""
    children = {b"": set()}
    for string in strings:
        for end, byte in enumerate(string):
            children.setdefault(string[:end], set()).add(byte)
    return {prefix: sorted(bytes_) for prefix, bytes_ in children.items()}


class _Slots:
    """The free slots and the unused bases, as the bits of one int per block.

    Operations on ints of 256 bits are faster than those on small arrays.
    """

    def __init__(self):
        self._free, self._unused, self._first_open = [], [], 0
        self._new_block()
        self._free[0] ^= 1  # the root

    @property
    def size(self):
        return BLOCK * len(self._free)

    def place(self, bytes_):
        """Takes a slot for each byte; returns the base."""
        first = self._first_open
        if len(bytes_) > 1:
            first = max(first, len(self._free) - OPEN_BLOCKS)
        for block in range(first, len(self._free) + 1):
            if block == len(self._free):
                self._new_block()
            fits = self._unused[block]
            for byte in bytes_:
                fits &= _exchanged(self._free[block], byte)
            if fits:
                return self._take(block, (fits & -fits).bit_length() - 1, bytes_)

    def _take(self, block, base, bytes_):
        for byte in bytes_:
            self._free[block] ^= 1 << (base ^ byte)
        self._unused[block] ^= 1 << base
        while self._free[self._first_open].bit_count() < CLOSE_BELOW:
            self._first_open += 1
            if self._first_open == len(self._free):
                self._new_block()
        return block * BLOCK + base

    def _new_block(self):
        self._free.append(2**BLOCK - 1)
        self._unused.append(2**BLOCK - 1)


def _exchanged(bits, byte):
    """Returns the int whose bit i is bit `i ^ byte` of another."""
    for power, low in _LOW_BITS.items():
        if byte & power:
            bits = (bits & low) << power | (bits >> power) & low
    return bits


# For each power of two, the positions below 256 that do not contain it.
_LOW_BITS = {
    power: sum(1 << i for i in range(BLOCK) if not i & power)
    for power in (1, 2, 4, 8, 16, 32, 64, 128)
}
