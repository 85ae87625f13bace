"""Folders beyond/ are imported where they are, and an error inside one is not hidden."""

import pytest

from core import discovery


def test_modules_come_in_order_and_an_error_inside_one_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (folder := tmp_path / "painted" / "beyond").mkdir(parents=True)
    for name, text in {"../__init__": "", "__init__": "", "b": "X = 2", "a": "X = 1"}.items():
        (folder / f"{name}.py").write_text(text)
    assert [module.X for module in discovery.modules("painted")] == [1, 2]
    assert (
        discovery.module("painted.beyond.b").X == 2 and discovery.module("painted.beyond.c") is None
    )
    assert (
        discovery.modules("painted", "elsewhere") == []
        and discovery.module("nowhere.at.all") is None
    )
    (folder / "c.py").write_text("import not_installed_anywhere")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        discovery.modules("painted")
