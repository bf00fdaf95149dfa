"""What tests of strategies compare with."""

import pytest
import strategy_worker


@pytest.fixture(scope="session")
def one_device():
    """The training of `strategy_worker`, without a strategy."""
    return strategy_worker.trained()
