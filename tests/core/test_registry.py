"""The registry is the only list of methods: no other file names one, and what is registered is known everywhere."""

import argparse
import ast

import numpy as np
import pytest

from core import rope
from core.rope import RopeScaling
from experiments.kit import command_line
from experiments.kit.records import ROOT

FOLDERS = ("core", "eval", "experiments", "analysis", "tables", "figures", "report", "tools")
ORDINARY = {"factors", "llama3"}  # also a word for scaling factors, and a type of transformers
# What chooses methods: the registry, the suites, and what shows some of those beyond the paper.
CHOOSES = ("core/methods/", "core/beyond/", "experiments/suites/", "analysis/beyond/learned.py")


def test_no_other_file_holds_a_string_that_is_a_methods_name():
    named, count = [], 0
    for file in sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        if str(file.relative_to(ROOT)).startswith(CHOOSES):
            continue
        count, text = count + 1, file.read_text()
        if not any(f'"{method}"' in text for method in rope.METHODS):
            continue  # which saves its parsing
        constants = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        names = (node for node in constants if node.value in rope.METHODS.keys() - ORDINARY)
        named += [f"{file.relative_to(ROOT)}:{node.lineno}: {node.value!r}" for node in names]
    assert not named and count > 100, "\n".join(named)


def test_command_lines_offer_a_new_method_with_its_options(monkeypatch):
    monkeypatch.setitem(rope.METHODS, "halved", None)  # which takes it away afterwards

    @rope.register("halved", "Halved from a pair on")
    def halved(geometry, factor, *, first: int = 2, by: float | None = None):
        """Divide the later pairs.

        Args:
            first: the first pair
                that is divided.
            by: the divisor, None for s.
        """
        chosen = np.arange(geometry.pairs) >= first
        return RopeScaling(np.where(chosen, geometry.inv_freq / (by or factor), geometry.inv_freq), 1.0, chosen)

    parser = argparse.ArgumentParser()
    command_line.add_method_arguments(parser, several=True)
    arguments = parser.parse_args(["--method", "halved", rope.TIME_REFERENCE, "--first", "3", "--by", "2.5"])
    assert command_line.chosen_methods(arguments) == [("halved", {"first": 3, "by": 2.5}), (rope.TIME_REFERENCE, {})]
    with pytest.raises(SystemExit):
        parser.parse_args(["--first", "3.5"])
    text = " ".join(parser.format_help().split())
    assert "halved: the first pair that is divided (default 2)" in text and "halved: the divisor, None for s" in text
