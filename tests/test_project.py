"""What holds the project together: environments, Makefile, and the direction of imports."""

import ast
import os
import re
import subprocess

import pytest

from records import ROOT


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
    marked = r"^([a-z_-]+)==[^\s;]+; (sys_platform == .*)$"  # what other systems have no wheels of
    assert pins("requirements.lock", marked) == pins("requirements.in", marked)
    assert "triton" in pins("requirements.lock", marked)
    assert list(pins("requirements-flash.txt")) == ["flash-attn"] and "flash-attn" not in locked
    assert "-r requirements.lock" in (ROOT / "environment.yml").read_text()


MAKEFILE = (ROOT / "Makefile").read_text()
VARIABLES = re.search(r"^WRITTEN := (.*)$", MAKEFILE, re.MULTILINE)[1].split()


@pytest.mark.parametrize("target", ["rerun", "table_ruler", "report"])
def test_no_value_of_a_make_variable_is_run_by_make_or_by_the_shell(tmp_path, target):
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    trap = tmp_path / "trap"
    command = ["make", target, f"VENV={tmp_path}", "-o", f"{tmp_path}/.installed"]

    def make(value):
        values = [f"{name}={value}" for name in VARIABLES]
        return subprocess.run([*command, *values], cwd=ROOT, capture_output=True, text=True)

    hostile = f"a'; touch {trap}; echo '$(shell touch {trap}) #"
    assert hostile in make(hostile).stdout
    refused = make(f"a\ntouch {trap}")
    assert refused.returncode == 2
    assert "holds a line break" in refused.stderr
    assert not trap.exists()


@pytest.mark.parametrize("uv_works", [True, False])
def test_packages_come_from_where_pip_is_configured_to_by_uv_or_by_pip(tmp_path, uv_works):
    log = tmp_path / "log"
    python = f"""#!/bin/sh
case "$*" in
  *venv*) mkdir -p {tmp_path}/venv/bin; cp "$0" {tmp_path}/venv/bin/python;;
  *config*) cat <<'END'
:env:.index-url='https://mine/simple'
global.extra-index-url='https://a\\nhttps://b'
global.index-url='https://others/simple'
global.find-links='one two'
END
  ;;
  *install*) echo pip "$@" >> {log};;
esac
"""
    asked = "$UV_DEFAULT_INDEX $UV_EXTRA_INDEX_URL $UV_FIND_LINKS"
    uv = f"""#!/bin/sh\necho uv "$@" from {asked} >> {log}; exit {int(not uv_works)}\n"""
    for name, script in (("python", python), ("uv", uv)):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    paths = f"PYTHON={tmp_path}/python", f"VENV={tmp_path}/venv"
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["make", "env", *paths], cwd=ROOT, env=environment, check=True)
    by_uv, *others = log.read_text().splitlines()
    assert "-r requirements.lock" in by_uv
    assert by_uv.endswith("from https://mine/simple https://a https://b one,two")
    installs = [line for line in others if "requirements" in line]
    assert [line.split()[0] for line in installs] == (["uv"] if uv_works else ["pip", "uv", "pip"])


# Each folder may import from those named: core → experiments (→ eval) → results → analysis →
# tables, figures → report.
ALLOWED = {
    # its modules import each other relatively: installed, they are the package dprope
    "core": set(),
    "eval": {"core", "eval"},
    "records": {"core", "records"},
    "experiments": {"core", "eval", "records", "experiments"},
    "analysis": {"core", "eval", "records", "experiments", "analysis"},
    "tables": {"core", "eval", "records", "experiments", "analysis", "tables"},
    "figures": {"core", "eval", "records", "experiments", "analysis", "figures"},
    "report": {"core", "eval", "records", "experiments", "analysis", "tables", "figures", "report"},
}


def imported(file) -> list[str]:
    """The dotted names that a file imports, at once or in a function; relative ones begin with
    dots."""
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
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


@pytest.mark.parametrize("folder", [*ALLOWED, "tests"])
def test_the_papers_part_imports_nothing_beyond_it(folder):
    """So that every folder beyond/ can be removed; core/discovery.py lists what lies there."""
    for file in (ROOT / folder).rglob("*.py"):
        if "beyond" not in file.relative_to(ROOT).parts:
            for name in imported(file):
                assert "beyond" not in name.split("."), f"{file} imports {name}"
