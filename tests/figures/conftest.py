import matplotlib.pyplot as plt
import pytest

from tests.analysis.recorder import recorder

__all__ = ["recorder"]


@pytest.fixture(autouse=True)
def closed():
    """No figure stays open after its test."""
    yield
    plt.close("all")
