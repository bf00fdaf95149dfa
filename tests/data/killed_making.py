"""Makes a token cache and kills itself after three chunks: SOURCE TARGET MODEL FOLDER.

Without a `__main__` guard, as many scripts are.
"""

import os
import signal
import sys

from keras_vanilla.data import TokenCache, token_cache
from keras_vanilla.tokenizer import Tokenizer

source, target, model, folder = sys.argv[1:]
token_cache.LINES_AT_ONCE = 700
tokenizer = Tokenizer.from_files(model)
encode, calls = tokenizer.encode, []


def encode_or_die(lines):
    calls.append(len(lines))
    if sum(calls) > 3 * 700:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode(lines)


tokenizer.encode = encode_or_die
TokenCache.make(source, target, tokenizer, folder, max_tokens=41)
