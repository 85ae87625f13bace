"""What a command line says of itself, and how it is read."""

import importlib
import json
import re
import subprocess
import sys

import pytest

from core import rope
from experiments.kit import command_line
from experiments.kit.records import ROOT
from experiments.passkey import Passkey

SCRIPTS = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for folder in ("experiments", "experiments/beyond")
    for file in sorted((ROOT / folder).glob("*.py"))
    if "__main__" in file.read_text()
]
# Prints [script, exit status, output] of each, and then the modules that are loaded.
PROGRAM = """
import contextlib, importlib, io, json, sys
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            importlib.import_module(name).main()
        status = None
    except SystemExit as stop:
        status = stop.code
    print(json.dumps([name, status, output.getvalue()]))
print(json.dumps(list(sys.modules)))
"""


def test_the_help_of_every_script_begins_with_its_text_and_loads_neither_torch_nor_transformers():
    command = [sys.executable, "-c", PROGRAM, *SCRIPTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *scripts, modules = map(json.loads, done.stdout.splitlines())
    assert not {"torch", "transformers"} & {*modules}
    assert [name for name, *_ in scripts] == SCRIPTS and len(SCRIPTS) > 10
    for name, status, text in scripts:
        first, _, rest = text.partition("\n\n")
        assert status == 0 and first.startswith(f"usage: python -m {name}"), name
        assert rest.startswith(importlib.import_module(name).__doc__), name


def test_help_names_every_option_of_a_method_and_help_methods_explains_it(call):
    options = {f"--{name.replace('_', '-')}" for name in rope.all_options()}
    for words, explained in (["--help"], False), (["--help-methods"], True):
        status, text, _ = call("passkey", *words)
        assert status == 0 and options <= {*re.findall(r"--[a-z-]+", text)}
        assert ("number of dimensions to interpolate" in " ".join(text.split())) == explained


@pytest.mark.parametrize(
    "words", ["--n_hat 4 --file a_b", "--n-hat=4 --file=a_b", "--n_hat=4 --file a_b"]
)
def test_underscores_in_the_name_of_an_option_are_hyphens(words):
    parser = command_line.parser("")
    command_line.add_method_arguments(parser)
    arguments = parser.parse_args(words.split())
    assert (arguments.n_hat, arguments.file) == (4, "a_b")


@pytest.mark.parametrize(
    ("words", "options", "name"),
    [
        ("dprope", {}, "dprope at t = 0"),
        ("dprope --threshold 0 --intervals 360", {}, "dprope at t = 0"),
        ("dprope --n-hat 40", {"n_hat": 40}, "dprope at n̂ = 40"),
        ("dprope --threshold 0.1", {"threshold": 0.1}, "dprope at t = 0.1"),
        ("yarn", {}, "yarn"),
    ],
)
def test_a_setting_has_one_name(words, options, name):
    """An option that states its default changes neither the run nor what it is called."""
    parser = command_line.parser("")
    command_line.add_method_arguments(parser, several="all")
    (setting,) = command_line.chosen_methods(parser.parse_args(["--method", *words.split()]))
    assert setting == (words.split()[0], options)
    assert command_line.in_words(*setting) == name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # As in the suite of tiny, which has two keys and leaves the depths to the script.
        ("", ([512, 1024, 2048, 3072, 4096], 2, 5)),
        ("--lengths 800 400", ([400, 800], 2, 5)),
        # What is stated holds, be it the script's own default.
        ("--keys 3 --depths 4", ([512, 1024, 2048, 3072, 4096], 3, 4)),
    ],
)
def test_what_the_command_line_leaves_open_is_as_in_the_models_suite(monkeypatch, words, expected):
    monkeypatch.setattr(sys, "argv", ["passkey", *words.split()])
    arguments, base = Passkey.read_command_line()
    assert (arguments.lengths, arguments.keys, arguments.depths) == expected
    assert base.name == "tiny" and arguments.factor == 2
