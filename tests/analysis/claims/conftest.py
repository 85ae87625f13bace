import pytest

from tests.analysis.claims.made import Folder


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "results")
