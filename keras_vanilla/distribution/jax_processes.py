"""The processes of a JAX training, as environment variables describe them."""

import os

import keras

ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
COUNT = "KERAS_DISTRIBUTION_NUM_PROCESSES"
NUMBER = "KERAS_DISTRIBUTION_PROCESS_ID"
NAMES = (ADDRESSES, COUNT, NUMBER)


def are_several() -> bool:
    """Whether several processes train together, or environment variables name them."""
    import jax

    if jax.distributed.is_initialized():
        return jax.process_count() > 1
    return any(os.environ.get(name) for name in NAMES) and os.environ.get(COUNT) != "1"


def join() -> None:
    """Connects to the other processes, unless that was done before.

    Raises:
        ValueError: if the environment variables are missing or wrong, or JAX has
            computed something before.
    """
    import jax

    if jax.distributed.is_initialized():
        return
    _check_environment()
    try:
        keras.distribution.initialize()
    except RuntimeError as error:
        if "before any JAX calls" not in str(error):
            raise
        raise ValueError(
            "The strategy 'multi-worker' must be entered before JAX computes anything: "
            "before models and tensors."
        ) from error


def _check_environment():
    if missing := [name for name in NAMES if not os.environ.get(name)]:
        raise ValueError(
            "The strategy 'multi-worker' on JAX needs the environment variables "
            f"{', '.join(NAMES)}; with one process use 'mirrored' or 'single'. "
            f"Received: no {', '.join(missing)}"
        )
    addresses, count, number = (os.environ[name] for name in NAMES)
    numbers = count.isdecimal() and number.isdecimal()
    if not (numbers and 0 <= int(number) < int(count) and int(count) > 1):
        raise ValueError(
            f"{COUNT} must be at least 2 and {NUMBER} from 0 to one less. "
            f"Received: {count!r} and {number!r}"
        )
    for address in addresses.split(","):
        if not address.rpartition(":")[2].isdecimal():
            raise ValueError(
                f"{ADDRESSES} must be host:port, of process 0 or of all with commas "
                f"between. Received: {address!r}"
            )
