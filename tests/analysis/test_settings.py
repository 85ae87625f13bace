"""The names of settings."""

from analysis.settings import Setting
from core import rope


def test_every_registered_method_has_a_name_of_its_own():
    names = {Setting(method, (), 2.0).name for method in rope.METHODS}
    assert len(names) == len(rope.METHODS)
