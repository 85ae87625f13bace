"""The names of settings, and their order."""

from analysis.comparison import compared
from analysis.settings import Setting
from core import rope


def test_rows_of_any_method_have_a_name_and_a_place(recorder):
    for method, options in (
        ("never-heard-of", {"strength": 0.5}),
        ("dprope", {"n_hat": 28}),
        ("dprope", {"n_hat": 40}),
        ("dprope", {}),
        ("original", {}),
        (None, {}),
    ):
        recorder.add("ruler", method, {}, options=options)
    names = [row.setting.name for row in compared(recorder.results(), "ruler", False).rows]
    assert names == [
        *("as it is", "original", "DPRoPE (t = 0)", "DPRoPE (n̂ = 40)", "DPRoPE (n̂ = 28)"),
        "never-heard-of (strength = 0.5)",
    ]


def test_every_registered_method_has_a_name_of_its_own():
    names = {Setting(method, (), 2.0).name for method in rope.METHODS}
    assert len(names) == len(rope.METHODS)
