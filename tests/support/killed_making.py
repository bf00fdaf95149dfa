"""Makes a token cache in processes, to be killed: SOURCE TARGET MODEL FOLDER.

Without a `__main__` guard, as many scripts are.
"""

import sys

from keras_vanilla.data import TokenCache
from keras_vanilla.data.cache import progress, token_cache
from keras_vanilla.tokenizer import Tokenizer

source, target, model, folder = sys.argv[1:]
progress.SECONDS_BETWEEN = 0
token_cache.LINES_OF_A_PART = 700
tokenizer = Tokenizer.from_files(model)
TokenCache.make(
    source,
    target,
    tokenizer,
    folder,
    processes=2,
    progress=lambda message: print(message, flush=True),
)
