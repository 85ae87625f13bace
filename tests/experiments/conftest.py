"""Where the experiments of a test write."""

import pytest


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"
