"""What holds the project together: environments, Makefile, and the direction of imports."""

import ast
import re
import subprocess
import sys

import pytest

from analysis import drawing
from experiments.kit.records import ROOT


def pins(file: str, pattern: str = r"^\s*(?:- )?([A-Za-z0-9_.-]+)==([^\s;]+)") -> dict[str, str]:
    found = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version in found}


def test_the_environment_that_runs_is_the_locked_one():
    from importlib.metadata import version

    for name, locked in {**pins("requirements.lock"), **pins("requirements-data.lock")}.items():
        assert version(name).split("+")[0] == locked, name


def test_what_is_asked_for_is_locked_and_what_is_compiled_stands_alone():
    """So that a failure to compile blocks nothing."""
    asked = pins("requirements.in")
    locked = pins("requirements.lock")
    assert {name: locked[name] for name in asked} == asked
    assert list(pins("requirements-flash.txt")) == ["flash-attn"] and "flash-attn" not in locked
    assert "-r requirements.lock" in (ROOT / "environment.yml").read_text()


def test_no_value_of_a_make_variable_is_run_by_make_or_by_the_shell(tmp_path):
    python = tmp_path / "bin" / "python"
    trap = tmp_path / "trap"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    hostile = f"a'; touch {trap}; echo '$(shell touch {trap}) #"
    names = (
        "MODEL",
        "METHOD",
        "METHODS",
        "FACTOR",
        "QUICK",
        "TEXTS",
        "BENCHMARKS",
        "CORPUS",
        "REPLACE",
        "RESULTS",
    )
    values = [f"{name}={hostile}" for name in names]
    for target in (
        "rerun",
        "ablations",
        "train",
        "table_ruler",
        "fig_passkey",
        "tables",
        "pretrain",
        "report",
    ):
        command = ["make", target, *values, f"VENV={tmp_path}", "-o", f"{tmp_path}/.installed"]
        given = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert hostile in given and not trap.exists(), target
    for name in names:
        broken = f"{name}=a\ntouch {trap}"
        command = ["make", "--no-print-directory", "rerun", broken, f"VENV={tmp_path}"]
        refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert refused.returncode == 2 and f"{name} holds a line break" in refused.stderr
        assert not refused.stdout and not trap.exists()


# Each folder may import from those named: core → experiments (→ eval) → results → analysis →
# tables, figures → report.
ALLOWED = {
    # its modules import each other relatively: installed, they are the package dprope
    "core": set(),
    "eval": {"core", "eval"},
    "experiments": {"core", "eval", "experiments"},
    "analysis": {"core", "eval", "experiments", "analysis"},
    "tables": {"core", "eval", "experiments", "analysis", "tables"},
    "figures": {"core", "eval", "experiments", "analysis", "figures"},
    "report": {"core", "eval", "experiments", "analysis", "tables", "figures", "report"},
}


def imported(file) -> list[str]:
    """The dotted names that a file imports, at once or later; relative ones begin with dots."""
    text = file.read_text()
    names = re.findall(r"\blater\(\"([\w.]+)\"\)", text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_flow_one_way(folder):
    for file in (ROOT / folder).rglob("*.py"):
        for name in imported(file):
            top = name.split(".")[0]
            assert top not in ALLOWED.keys() - ALLOWED[folder], f"{file.name} imports {name}"


@pytest.mark.parametrize("folder", [*ALLOWED, "tools", "tests"])
def test_the_papers_part_imports_nothing_beyond_it(folder):
    """So that every folder beyond/ can be removed; core/discovery.py lists what lies there."""
    files = [
        file
        for file in (ROOT / folder).rglob("*.py")
        if "beyond" not in file.relative_to(ROOT).parts
    ]
    names = [(str(file.relative_to(ROOT)), name) for file in files for name in imported(file)]
    assert not [(file, name) for file, name in names if "beyond" in name.split(".")]


def test_rendering_and_disturbances_need_no_torch():
    """Tables, figures and pages come from records alone, and disturbances from a geometry."""
    declared = [*drawing.declared("tables").values(), *drawing.declared("figures").values()]
    modules = [module for module, _ in declared]
    modules += ["experiments.disturbance", "report.pages"]
    program = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
