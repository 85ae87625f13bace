import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed():
    """No figure stays open after its test."""
    yield
    plt.close("all")
