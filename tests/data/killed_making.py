"""Makes a token cache over an older one, killed at each of its writes in turn: FOLDER.

Every attempt is a fork that kills itself before its n-th call of `write`, `fsync` or
`replace`. After each, the older cache is whole, or the new one. Prints the number of
kills.
"""

import builtins
import os
import signal
import sys
from pathlib import Path

from keras_vanilla.data import TokenCache, token_cache
from keras_vanilla.tokenizer import WordTokenizer

folder = Path(sys.argv[1])
token_cache.LINES_AT_ONCE = 5
texts = [[f"{name} {n}" for n in range(31)] for name in ("a", "b", "c", "d")]
tokenizer = WordTokenizer.train([line for lines in texts for line in lines])
for name, lines in zip("abcd", texts, strict=True):
    (folder / name).write_text("\n".join(lines))


def make(source, target, cache):
    return TokenCache.make(folder / source, folder / target, tokenizer, folder / cache)


def killed_at(count):
    """Makes the new cache in a fork; returns whether it was killed."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = [count]

    def counted(function):
        def call(*arguments):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        return call

    class Counting:
        """A file whose writes are counted, and not held back in a buffer."""

        def __init__(self, file):
            self._file, self.write = file, counted(file.write)

        def __getattr__(self, name):
            return getattr(self._file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self._file.close()

    def open_counting(path, mode="r", *arguments, **options):
        if mode != "x+b":
            return builtins.open(path, mode, *arguments, **options)
        return Counting(builtins.open(path, mode, buffering=0))

    token_cache.open = open_counting
    os.fsync, os.replace = counted(os.fsync), counted(os.replace)
    make("c", "d", "cache")
    os._exit(0)


before, after = make("a", "b", "cache"), make("c", "d", "expected")
content = [(each.folder / token_cache.NAME).read_bytes() for each in (before, after)]
kills = 0
while killed_at(kills):
    kills += 1
    found = (folder / "cache" / token_cache.NAME).read_bytes()
    assert found in content, "half a cache has the name of a whole one"
    assert TokenCache(folder / "cache").digest in (before.digest, after.digest)
    assert len(list((folder / "cache").iterdir())) <= 3, "what earlier kills left"
    if found == content[1]:
        make("a", "b", "cache")
assert (folder / "cache" / token_cache.NAME).read_bytes() == content[1]
names = {path.name for path in (folder / "cache").iterdir()}
assert names == {".lock", token_cache.NAME}
print(kills)
