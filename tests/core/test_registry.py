"""The registry is the only list of methods: no other file names one."""

import ast

from core import rope
from experiments.kit.records import ROOT

FOLDERS = ("core", "eval", "experiments", "analysis", "tables", "figures", "report", "tools")
ORDINARY = {"factors", "llama3"}  # also a word for scaling factors, and a type of transformers
# What chooses methods: the registry, the suites, and what shows some of those beyond the paper.
CHOOSES = ("core/methods/", "core/roles.py", "core/beyond/", "experiments/suites/", "analysis/beyond/learned.py")


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
