"""What holds the project together: environments, Makefile, and the direction of imports."""

import ast
import re
import subprocess

import pytest

from experiments.records import ROOT


def pins(file: str, pattern: str = r"^\s*(?:- )?([A-Za-z0-9_.-]+)==([^\s;]+)") -> dict[str, str]:
    found = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version in found}


def test_conda_and_pip_environments_agree():
    conda, asked, locked = pins("environment.yml"), pins("requirements.in"), pins("requirements.lock")
    gpu = pins("requirements-gpu.txt")
    named = {"torch", "transformers", "deepspeed", "flash-attn", "datasets", "lm-eval", "pandas", "matplotlib"}
    assert named <= conda.keys()
    assert conda == asked | gpu
    assert gpu.keys() == {"flash-attn", "liger-kernel"}
    assert {name: locked[name] for name in asked} == asked


def test_every_line_of_the_locks_is_pinned_exactly():
    for file in ("requirements.lock", "requirements-data.lock"):
        lines = [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")]
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][\w.]*", line) for line in lines), file


def test_the_environment_that_runs_is_the_locked_one():
    from importlib.metadata import version

    for name, locked in {**pins("requirements.lock"), **pins("requirements-data.lock")}.items():
        assert version(name).split("+")[0] == locked, name


def test_make_help_documents_every_target():
    documented = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    targets = set(phony[0].split())
    for kind, prefix in (("TABLES", "table_"), ("FIGURES", "fig_")):
        names = re.search(rf"^{kind}\s*:= ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)[1].replace("\\\n", " ").split()
        targets |= {prefix + name for name in names}
        modules = {f.stem for f in (ROOT / kind.lower()).glob("*.py")}
        assert set(names) <= modules
    for target in targets:
        assert re.search(rf"^  {target}\s+\S", documented, re.MULTILINE), target


def test_what_was_verified_with_other_code_is_measured_anew(tmp_path):
    """The folder of `make verify`'s records is another one after a change of what measures, and of that alone."""

    def folder():
        lines = subprocess.run(
            ["make", "-n", "verify"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        (found,) = set(re.findall(r"build/verify/\S+/results", lines))
        return found

    for name in ("Makefile", "requirements.lock", "requirements-data.lock"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    for name in ("core/rope.py", "eval/ruler.py", "experiments/verify.py", "tables/ruler.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    folders = [folder(), folder()]
    for name in ("tables/ruler.py", "eval/ruler.py", "core/rope.py"):
        (tmp_path / name).write_text("changed = True")
        folders.append(folder())
    assert folders[0] == folders[1] == folders[2] and len(set(folders)) == 3


# Each folder may import from those named: core → experiments (→ eval) → results → tables, figures.
ALLOWED = {
    "core": {"core"},
    "eval": {"core", "eval"},
    "experiments": {"core", "eval", "experiments"},
    "tables": {"core", "eval", "experiments", "tables"},
    "figures": {"core", "eval", "experiments", "tables", "figures"},
}


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_flow_one_way(folder):
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                top = name.split(".")[0]
                assert top not in ALLOWED.keys() - ALLOWED[folder], f"{file.name} imports {name}"
