"""`python -m keras_vanilla`, the same as the console script `keras-vanilla`."""

import sys

from keras_vanilla.cli import main

sys.exit(main())
