"""Folders beyond/ are found where they are, and an error inside one is not hidden."""

import sys

import pytest

from core import discovery


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes files of a package `painted`."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**files):
        for name, text in {"__init__": "", **files}.items():
            file = tmp_path / "painted" / f"{name.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    yield write
    for name in [name for name in sys.modules if name.split(".")[0] == "painted"]:
        del sys.modules[name]


def test_modules_come_in_the_order_of_their_names(package):
    package(beyond__in____init__="", beyond__in__b="X = 2", beyond__in__a="X = 1", other="X = 3")
    assert [module.X for module in discovery.modules("painted")] == [1, 2]
    assert discovery.module("painted.beyond.b").X == 2 and discovery.module("painted.beyond.c") is None


def test_nothing_is_found_where_nothing_is(package):
    package()
    assert discovery.modules("painted") == [] and discovery.module("painted.beyond.a") is None
    assert discovery.module("nowhere.at.all") is None


def test_a_module_that_lacks_a_library_says_so(package):
    package(beyond__in____init__="", beyond__in__a="import not_installed_anywhere")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        discovery.modules("painted")
