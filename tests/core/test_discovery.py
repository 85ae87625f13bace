"""Folders beyond/ are imported where they are, and an error inside one is not hidden."""

import sys

import pytest

from core import discovery


@pytest.fixture
def beyond(tmp_path, monkeypatch):
    """The folder beyond/ of a package `painted`."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "painted" / "beyond"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "painted"]:
        del sys.modules[name]


def test_modules_come_in_order_none_where_there_is_no_folder_and_an_error_inside_one_is_not_hidden(beyond):
    for name, text in {"__init__": "", "b": "X = 2", "a": "X = 1"}.items():
        (beyond / f"{name}.py").write_text(text)
    assert [module.X for module in discovery.modules("painted")] == [1, 2]
    assert discovery.module("painted.beyond.b").X == 2 and discovery.module("painted.beyond.c") is None
    assert discovery.modules("painted", "elsewhere") == [] and discovery.module("nowhere.at.all") is None
    (beyond / "c.py").write_text("import not_installed_anywhere")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        discovery.modules("painted")
