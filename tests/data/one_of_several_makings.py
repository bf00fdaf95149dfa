"""Makes a token cache when told to: SOURCE TARGET MODEL FOLDER SIGNAL.

It prints "ready", waits until the file SIGNAL exists, and prints how the making ended.
"""

import sys
import time
from pathlib import Path

from keras_vanilla._folder_lock import FolderInUse
from keras_vanilla.data import TokenCache
from keras_vanilla.tokenizer import Tokenizer

source, target, model, folder, signal = sys.argv[1:]
tokenizer = Tokenizer.from_files(model)
print("ready", flush=True)
while not Path(signal).exists():
    time.sleep(0.001)
try:
    TokenCache.make(source, target, tokenizer, folder)
    print("made")
except FolderInUse as error:
    print(error)
