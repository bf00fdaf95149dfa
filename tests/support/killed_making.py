"""Makes a token cache and kills itself in the fourth shard: SOURCE TARGET MODEL FOLDER.

Without a `__main__` guard, as many scripts are.
"""

import os
import signal
import sys

from keras_vanilla.data import TokenCache, cache_making
from keras_vanilla.tokenizer import Tokenizer

source, target, model, folder = sys.argv[1:]
cache_making.LINES_PER_SHARD = 700
tokenizer = Tokenizer.from_files(model)
encode, calls = tokenizer.encode, []


def encode_or_die(lines):
    calls.append(len(lines))
    if sum(calls) > 3 * 700:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode(lines)


tokenizer.encode = encode_or_die
TokenCache.make(source, target, tokenizer, folder, max_tokens=41)
