"""Makes a token cache over an older one, killed at each access in turn: FOLDER.

After each, the older cache is whole, or the new one. Prints the number of kills.
"""

import sys
from pathlib import Path

from killed_at_each_access import die_at_zero, kills

from keras_vanilla.data import TokenCache, token_cache
from keras_vanilla.tokenizer import WordTokenizer

folder = Path(sys.argv[1])
token_cache.LINES_AT_ONCE = 5
texts = [[f"{name} {n}" for n in range(31)] for name in "abcd"]
tokenizer = WordTokenizer.train([line for lines in texts for line in lines])
for name, lines in zip("abcd", texts, strict=True):
    (folder / name).write_text("\n".join(lines))
encode = tokenizer.encode


def dying_encode(lines):
    die_at_zero()
    return encode(lines)


def make(source, target, cache):
    return TokenCache.make(folder / source, folder / target, tokenizer, folder / cache)


tokenizer.encode = dying_encode
before, after = make("a", "b", "cache"), make("c", "d", "expected")
content = [(each.folder / token_cache.NAME).read_bytes() for each in (before, after)]


def check(number):
    found = (folder / "cache" / token_cache.NAME).read_bytes()
    assert found in content, "half a cache has the name of a whole one"
    assert TokenCache(folder / "cache").digest in (before.digest, after.digest)
    assert len(list((folder / "cache").iterdir())) <= 3, "what earlier kills left"
    if found == content[1]:
        make("a", "b", "cache")


print(kills(lambda _: make("c", "d", "cache"), check, "/cache/"))
names = {path.name for path in (folder / "cache").iterdir()}
assert names == {".lock", token_cache.NAME}
