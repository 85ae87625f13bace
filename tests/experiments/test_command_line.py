"""What a command line says of itself, and how it is read."""

import importlib
import json
import re
import subprocess
import sys

import pytest

from analysis import drawing
from core import rope
from experiments.kit import command_line
from records import ROOT

SCRIPTS = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for folder in ("experiments", "experiments/beyond")
    for file in sorted((ROOT / folder).glob("*.py"))
    if "__main__" in file.read_text()
]
# Prints [script, exit status, output] of each; then imports the other modules and prints all that
# are loaded.
PROGRAM = """
import contextlib, importlib, io, json, sys
scripts, modules = map(json.loads, sys.argv[1:])
for name in scripts:
    sys.argv = [name, "--help"]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            importlib.import_module(name).main()
        status = None
    except SystemExit as stop:
        status = stop.code
    print(json.dumps([name, status, output.getvalue()]))
for name in modules:
    importlib.import_module(name)
print(json.dumps(list(sys.modules)))
"""


def test_the_help_of_every_script_begins_with_its_text_and_needs_no_torch_nor_does_rendering():
    """Tables, figures and pages come from records alone, and disturbances from a geometry."""
    declared = [*drawing.declared("tables").values(), *drawing.declared("figures").values()]
    rendering = [module for module, _ in declared]
    rendering.append("report.pages")
    command = [sys.executable, "-c", PROGRAM, json.dumps(SCRIPTS), json.dumps(rendering)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *scripts, modules = map(json.loads, done.stdout.splitlines())
    assert not {"torch", "transformers"} & {*modules}
    assert [name for name, *_ in scripts] == SCRIPTS
    assert len(SCRIPTS) > 10
    for name, status, text in scripts:
        first, _, rest = text.partition("\n\n")
        assert status == 0, name
        assert first.startswith(f"usage: python -m {name}"), name
        assert rest.startswith(importlib.import_module(name).__doc__), name


@pytest.mark.parametrize("words, explained", [("--help", False), ("--help-methods", True)])
def test_help_names_every_option_of_a_method_and_help_methods_explains_it(done, words, explained):
    text = done("passkey", words)
    options = {f"--{name.replace('_', '-')}" for name in rope.all_options()}
    assert options <= {*re.findall(r"--[a-z-]+", text)}
    assert ("number of dimensions to interpolate" in " ".join(text.split())) == explained


@pytest.mark.parametrize("number", ["-1e-3", "-.5", "-2", "-inf"])
def test_a_negative_number_is_a_value(number):
    parser = command_line.parser("")
    command_line.add_method_arguments(parser)
    assert parser.parse_args(["--method", "dprope", "--threshold", number]).threshold == float(
        number
    )


def test_a_list_that_is_given_again_goes_on():
    parser = command_line.parser("")
    command_line.list_option(parser, "--lengths", int, "N", "", [1, 2])
    command_line.list_option(parser, "--texts", str, "PATH", "")
    line = ["--lengths", "7", "--texts", "b", "--lengths", "5", "7", "--texts", "a", "b"]
    for _ in range(2):  # a parser can be used again
        found = parser.parse_args(line)
        assert (found.lengths, found.texts) == ([5, 7], ["b", "a"])
    assert parser.parse_args([]).lengths == [1, 2]


def test_a_path_that_a_shell_leaves_as_it_is_begins_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert command_line.directory("~/x") == command_line.path("~/x") == tmp_path / "x"


def test_an_option_that_states_its_default_is_none():
    """So a fine-tune has the same name with it and without."""
    parser = command_line.parser("")
    command_line.add_method_arguments(parser, several="all")
    line = ["--method", "dprope", "--threshold", "0", "--intervals", "360"]
    assert command_line.chosen_methods(parser.parse_args(line)) == [("dprope", {})]
