"""The environments agree with each other, and what their files name is there."""

import fnmatch
import re
import subprocess
import tomllib

import pytest
import yaml

from experiments.kit.records import ROOT

CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
OPTIONAL = "requirements-flash.txt"
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


def pins(lines) -> dict[str, str]:
    """The version of each requirement; all of them are pinned exactly."""
    found = [re.fullmatch(r"([\w.-]+)==(\d[\w.]*)", line.strip()) for line in lines if not re.match(r"\s*(#|$)", line)]
    assert all(found)
    return {one[1].lower().replace("_", "-"): one[2] for one in found}


def lines(file: str) -> list[str]:
    return (ROOT / file).read_text().splitlines()


def pip_part() -> list[str]:
    (part,) = (entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict))
    return part


def test_conda_pip_and_the_lock_name_the_same_versions():
    conda, asked, locked = pins(pip_part()), pins(lines("requirements.in")), pins(lines("requirements.lock"))
    assert conda == asked
    assert {name: locked[name] for name in asked} == asked
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in map(pins, extras.values()):
        assert {name: locked[name] for name in extra} == extra


def test_what_is_compiled_stands_alone_so_that_its_failure_blocks_nothing():
    required = pins(pip_part()).keys() | pins(lines("requirements.lock")).keys()
    assert list(pins(lines(OPTIONAL))) == ["flash-attn"] and "flash-attn" not in required


def instructions(file) -> list[tuple[str, str]]:
    """(keyword, the rest) of each of a Dockerfile's, comments left out and continued lines joined."""
    text = "\n".join(line for line in file.read_text().splitlines() if not line.lstrip().startswith("#"))
    joined = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined if line.strip()]


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.stem)
class TestDockerfile:
    def test_copies_what_is_there_and_not_ignored(self, file):
        ignored = [line for line in lines(".dockerignore") if line and not line.startswith("#")]
        for keyword, rest in instructions(file):
            for source in rest.split()[:-1] if keyword == "COPY" else ():
                assert (ROOT / source).exists(), source
                assert not any(fnmatch.fnmatch(source, pattern) for pattern in ignored), source

    def test_runs_what_was_copied_before(self, file):
        """`make env` and every -r FILE find their files; the Makefile is copied with what its target depends on."""
        copied: set[str] = set()
        for keyword, rest in instructions(file):
            if keyword == "COPY":
                copied.update(rest.split()[:-1])
            elif keyword == "RUN":
                assert set(re.findall(r"-r (\S+?);?(?:\s|$)", rest)) <= copied
                for target in re.findall(r"\bmake (\S+)", rest) if not rest.startswith("apt-get") else ():
                    made = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
                    assert set(re.findall(r"-r (\S+)", made.stdout)) <= copied

    def test_its_commands_are_shell_and_its_arguments_are_used(self, file):
        found = instructions(file)
        commands = [rest for keyword, rest in found if keyword == "RUN"]
        for command in commands:
            subprocess.run(["sh", "-n", "-c", command], check=True)
        own = {rest.split("=")[0] for keyword, rest in found if keyword == "ARG"}
        read_by_tools = {"PIP_EXTRA_INDEX_URL", "MAX_JOBS"}  # pip's, and torch's extension builder's
        assert all(f"${name}" in " ".join(commands) for name in own - read_by_tools)
