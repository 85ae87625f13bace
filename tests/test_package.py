"""core/ as the package dprope: built into a wheel, installed apart, and used far from this
checkout."""

import functools
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement

from experiments.kit.records import ROOT
from tests.test_documented import outcome
from tests.test_project import imported

# A random Llama is extended, exported and loaded again; prints where dprope lies and which other
# modules came along.
PROGRAM = """
import sys

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

import dprope
from dprope import rope
from dprope.extend import export, extend, extend_checkpoint

torch.manual_seed(0)
sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1)
sizes |= dict(num_attention_heads=2, vocab_size=64)
model = LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=64)).eval()
model.save_pretrained("base")
extend(model, rope.PROPOSED, factor=2)
export(model, "extended")
extend_checkpoint("base", "on_disk", rope.PROPOSED, 2)
ids = torch.arange(100)[None] % 64
with torch.inference_mode():
    wanted = model(ids).logits
    for directory in ("extended", "on_disk"):
        loaded = AutoModelForCausalLM.from_pretrained(directory).eval()
        assert loaded.config.max_position_embeddings == 128
        assert torch.equal(loaded(ids).logits, wanted), directory
assert dprope.__file__.startswith(sys.path[0])
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"core", "eval", "experiments", "analysis"}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built without a network, from what the wheel needs and no more."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "core", source / "core", ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--wheel-dir", folder)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, source], check=True, capture_output=True
    )
    (built,) = folder.glob("dprope-*.whl")
    return built


def test_it_holds_the_files_of_core_as_they_are(wheel):
    with zipfile.ZipFile(wheel) as opened:
        held = {name: opened.read(name) for name in opened.namelist() if name.endswith(".py")}
    core = {
        f"dprope/{file.relative_to(ROOT / 'core')}": file.read_bytes()
        for file in (ROOT / "core").rglob("*.py")
    }
    assert held == core


def test_it_extends_a_model_without_this_checkout(wheel, tmp_path):
    """In a process that has the libraries of this one; from what an installer makes of a wheel of
    Python alone."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    status, output = outcome(tmp_path, functools.partial(exec, PROGRAM, {}))
    assert status == 0, output


def test_it_names_what_core_imports(wheel):
    """Of the modules that core imports, each is Python's own, its own, or of a package that it
    requires."""
    with zipfile.ZipFile(wheel) as opened:
        (metadata,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        fields = Parser().parsestr(opened.read(metadata).decode())
    listed = map(Requirement, fields.get_all("Requires-Dist"))
    required = {each.name for each in listed if "extra" not in str(each.marker)}
    names = {
        name.partition(".")[0] for file in (ROOT / "core").rglob("*.py") for name in imported(file)
    }
    packages = packages_distributions()
    needed = {
        packages[name][0] for name in names - sys.stdlib_module_names - {""}
    }  # relative ones begin with a dot
    assert needed == required if (ROOT / "core" / "beyond").is_dir() else needed <= required
