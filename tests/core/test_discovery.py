"""Folders beyond/ are imported where they are, and an error inside one is not hidden."""

import pytest

from core import discovery


def test_modules_come_in_order_and_an_error_inside_one_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "painted/beyond"
    folder.mkdir(parents=True)
    (folder / "b.py").write_text("X = 2")
    (folder / "a.py").write_text("X = 1")
    assert [module.X for module in discovery.modules("painted.beyond")] == [1, 2]
    assert discovery.modules("painted.elsewhere") == []
    assert discovery.module("painted.beyond.b").X == 2
    assert discovery.module("painted.beyond.c") is None
    assert discovery.module("nowhere.at.all") is None
    (folder / "c.py").write_text("import not_installed_anywhere")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        discovery.modules("painted.beyond")
