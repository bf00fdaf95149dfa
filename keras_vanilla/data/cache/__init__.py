"""A corpus of any size, tokenised once and kept on the disk."""

from keras_vanilla.data.cache.token_cache import TokenCache

__all__ = ["TokenCache"]
