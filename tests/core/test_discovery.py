"""A folder beyond/ is listed if it is there; a module that is there and broken is not taken for one that is missing."""

import sys

import pytest

from core import discovery


@pytest.fixture
def package(tmp_path, monkeypatch):
    name = "listed_package"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def test_the_modules_beyond_are_listed_by_name(package):
    assert discovery.modules(package.name) == []
    assert discovery.module(f"{package.name}.beyond.b") is None
    (package / "beyond").mkdir()
    for name in ("__init__", "b", "a"):
        (package / "beyond" / f"{name}.py").write_text(f"NAME = {name!r}")
    sys.modules.pop(f"{package.name}.beyond", None)
    assert [module.NAME for module in discovery.modules(package.name)] == ["a", "b"]
    assert discovery.module(f"{package.name}.beyond.b").NAME == "b"


def test_a_module_that_misses_another_is_not_missing(package):
    (package / "broken.py").write_text("import nowhere_to_be_found")
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        discovery.module(f"{package.name}.broken")
