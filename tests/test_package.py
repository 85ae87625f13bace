"""The package dprope: built into a wheel, installed apart, and used far from this checkout."""

import functools
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from core import rope
from records import ROOT
from tests.models import checkpoint
from tests.test_documented import outcome
from tests.test_project import imported

PARTS = "core", "eval", "records", "experiments"
# A random Llama is extended, exported and loaded again.
LIBRARY = """
import pydoc
import sys

import torch
from transformers import AutoModelForCausalLM

import dprope
from dprope import export, extend, extend_checkpoint

model = AutoModelForCausalLM.from_pretrained("base")
extend(model, "dprope", factor=2)
export(model, "extended")
extend_checkpoint("base", "on_disk", "dprope", 2)
ids = torch.arange(200)[None] % 64
with torch.inference_mode():
    wanted = model(ids).logits
    for directory in ("extended", "on_disk"):
        loaded = AutoModelForCausalLM.from_pretrained(directory)
        assert loaded.config.max_position_embeddings == 256
        assert torch.equal(loaded(ids).logits, wanted), directory
assert dprope.__file__.startswith(sys.path[0])
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"core", "eval", "records", "experiments", "analysis"}
shown = pydoc.plain(pydoc.render_doc(dprope))
assert all(f"{name}(" in shown for name in ("export", "extend", "extend_checkpoint", "methods"))
"""

# Methods are ranked, beside a module of one's own that is called core.
BEST = """
import sys

import core as mine  # of whoever calls
from transformers import AutoModelForCausalLM, AutoTokenizer

import dprope

model = dprope.extend(AutoModelForCausalLM.from_pretrained("base"), "pi", factor=2)
tokenizer = AutoTokenizer.from_pretrained("base")
tables = [
    dprope.best(each, ["text.txt"], tokenizer=tokenizer, methods=["yarn", "pi"])
    for each in (model, "base")
]
assert tables[0].loc["yarn", "loss_beyond"] == tables[1].loc["yarn", "loss_beyond"]
assert all(each.attrs["command"].startswith("dprope extend --model base ") for each in tables)
assert sys.modules["core"] is mine and "experiments" not in sys.modules
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built without a network, from what the wheel needs and no more."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("package", *PARTS):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--wheel-dir", folder)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, source], check=True, capture_output=True
    )
    (built,) = folder.glob("dprope-*.whl")
    return built


@pytest.fixture
def installed(wheel, tmp_path):
    """A folder with what an installer makes of a wheel of Python alone, a checkpoint and a text."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    checkpoint(tmp_path / "base")
    (tmp_path / "text.txt").write_text("a text of some words " * 20)
    return tmp_path


def test_it_holds_the_files_as_they_are(wheel):
    with zipfile.ZipFile(wheel) as opened:
        held = {name: opened.read(name) for name in opened.namelist() if name.endswith(".py")}
    files = [file for part in PARTS for file in (ROOT / part).rglob("*.py")]
    expected = {f"dprope/{file.relative_to(ROOT)}": file.read_bytes() for file in files}
    expected["dprope/__init__.py"] = (ROOT / "package" / "__init__.py").read_bytes()
    assert held == expected


@pytest.mark.parametrize("program", [LIBRARY, BEST])
def test_it_works_in_python_without_this_checkout(installed, program):
    """In a process that has the libraries of this one."""
    (installed / "core.py").write_text("")
    status, output = outcome(installed, functools.partial(exec, program, {}))
    assert status == 0, output


def command(folder, *words):
    """The exit status and the output of `dprope WORDS`, after which it says what was imported."""

    def work():
        import dprope

        sys.argv = ["dprope", *words]
        dprope.main()
        files = [getattr(module, "__file__", None) for module in sys.modules.values()]
        print(*(f"file {file}" for file in files if str(folder) in str(file)), sep="\n")

    return outcome(folder, work)


def test_its_command_hands_over_to_scripts_which_find_all_that_they_import(installed):
    """Of the modules that are loaded, each is Python's own, its own, or of a package that it
    requires."""
    used = set()

    def run(*words):
        status, output = command(installed, *words)
        used.update(line[5:] for line in output.splitlines() if line.startswith("file "))
        return status, output

    status, output = run("methods")
    assert status == 0 and {line.split()[0] for line in output.splitlines()} >= set(rope.METHODS)
    status, output = run("extend", "--model", "base", "--method", "yarn", "--output", "other")
    assert status == 0 and (installed / "other" / "config.json").is_file(), output
    status, output = run("check", "http://127.0.0.1:9", "--model", "base", "--method", "yarn")
    assert status == 2 and "does not answer" in output, output
    status, output = run("extned")
    assert status == 2 and "unknown command 'extned' (did you mean 'extend'?)" in output
    status, output = run("methods", "yarn")
    assert status == 2 and "unrecognized arguments: yarn" in output

    (metadata,) = installed.glob("dprope-*.dist-info/METADATA")
    fields = Parser().parsestr(metadata.read_text())
    listed = map(Requirement, fields.get_all("Requires-Dist"))
    required = {each.name for each in listed if "extra" not in str(each.marker)}
    files = {*map(Path, used), *(installed / "dprope" / "core").rglob("*.py")}
    names = {name.partition(".")[0] for file in files for name in imported(file)}
    outside = names - sys.stdlib_module_names - {"", "dprope", *PARTS}  # relative: begins with dots
    assert {packages_distributions()[name][0] for name in outside} <= required


def test_it_says_whether_to_extend_a_model(installed):
    """With packages that it does not require, so apart from the other commands."""
    status, output = command(
        installed, "best", "--model", "base", "--texts", "text.txt", "--no-bos"
    )
    (line,) = (line for line in output.splitlines() if line.startswith("dprope extend "))
    assert status == 0 and "python -m" not in output, output
    assert command(installed, *line.replace("DIR", "extended").split()[1:])[0] == 0
    status, output = command(installed, "best", "--help")
    assert status == 0 and "smollm2" in output and "a base model: tiny" not in output
