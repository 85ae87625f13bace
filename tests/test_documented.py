"""What README and CONTRIBUTING have a reader do, done once on a copy: a method, a figure, a
benchmark, a base model."""

import contextlib
import functools
import importlib
import os
import re
import runpy
import shutil
import sys

import pytest
from markdown_it import MarkdownIt

from records import ROOT
from tests.files import read
from tests.models import checkpoint
from tests.processes import fork, wait

PROJECT = {"core", "eval", "records", "experiments", "analysis", "tables", "figures", "report"}
COMMANDS = (
    "experiments.extend --model tiny --method linear-ramp --start 4",
    "tables disturbance --model tiny",
    "figures cumulative --model llama2-7b",
    "report.pages --model llama2-7b",
    "experiments.copying --model tiny --method original dprope",
    "tables copying --model tiny",
    "experiments.rerun --model mine --list",
    "experiments.disturbance --model mine --method dprope",
)

# What README supposes: a model that transformers loaded.
LOADED = """
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained("mymodel")
tokenizer = AutoTokenizer.from_pretrained("mymodel")
"""


def python_blocks(page):
    return [
        token.content
        for token in MarkdownIt().parse((ROOT / page).read_text())
        if token.info == "python"
    ]


def outcome(folder, work):
    """The exit status and output of `work` in a process that has this one's libraries, and only the
    copy's project."""

    def alone():
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] in PROJECT]:
            del sys.modules[name]
        with open("output", "w") as sys.stdout, contextlib.redirect_stderr(sys.stdout):
            work()

    return wait(fork(alone)), (folder / "output").read_text()


def run(module, *arguments):
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project in which all was done, and the output of each command."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    besides = shutil.ignore_patterns(
        ".*", "build", "runs", "checkpoints", "tests", "__pycache__", "*.egg-info"
    )
    shutil.copytree(ROOT, folder, ignore=besides)
    checkpoint(folder / "mymodel", max_position_embeddings=1024)
    for block in python_blocks("CONTRIBUTING.md"):
        file = re.match(r"# (\S+)\n", block)
        (folder / file[1]).write_text(block[file.end() :])
    (readme,) = python_blocks("README.md")  # the package is built and installed by test_package.py
    readme = LOADED + readme.replace("from dprope", "from core.extend")
    steps = {"README": functools.partial(exec, readme, {})}
    steps |= {command: functools.partial(run, *command.split()) for command in COMMANDS}
    for library in ("matplotlib.pyplot", "pandas", "scipy.stats"):  # once for all steps
        importlib.import_module(library)
    outputs = {}
    for step, work in steps.items():
        status, outputs[step] = outcome(folder, work)
        assert status == 0, f"{step}\n{outputs[step]}"
    return folder, outputs


@pytest.mark.skipif(not (ROOT / "core/beyond").is_dir(), reason="its method lies beyond the paper")
def test_what_is_added_is_shown_by_all_that_shows_its_kind(copy):
    folder, outputs = copy
    method, table, _, _, _, copied, listed, moved = (outputs[command] for command in COMMANDS)
    assert "Linear ramp" in table
    page = (folder / "results/llama2-7b/README.md").read_text()
    assert "figures/llama2-7b/cumulative.png" in page
    assert "DPRoPE" in copied
    assert "perplexity --model mine --method dprope --factor 2 --intervals 180" in listed
    files = [*(folder / "results/tiny/copying").glob("*.json")]
    assert len(files) == 2
    for file in files:
        assert 0 < read(file)["scores"]["digits"]["mean"] < 1
    assert "divide by" in method and "dprope" in moved.lower()
    exported = read(folder / "DIR/config.json")
    assert exported["max_position_embeddings"] == 2048
