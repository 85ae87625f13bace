"""The environments agree with each other, and what their files name is there."""

import fnmatch
import os
import re
import shlex
import subprocess

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


def test_the_environment_names_what_the_design_asks_for():
    """flash-attn stands in the comment: in the pip part its isolated build, without torch, would fail all of it."""
    named = {"torch", "transformers", "deepspeed", "datasets", "lm-eval", "pandas", "matplotlib"}
    assert named <= pins(pip_part()).keys()
    comment = "\n".join(line for line in lines("environment.yml") if line.startswith("#"))
    assert "flash-attn" in comment and OPTIONAL in comment


def test_what_is_compiled_stands_alone_so_that_its_failure_blocks_nothing():
    required = pins(pip_part()).keys() | pins(lines("requirements.lock")).keys()
    assert list(pins(lines(OPTIONAL))) == ["flash-attn"] and "flash-attn" not in required


def test_triton_is_the_one_that_torch_for_gpus_has():
    """As torch 2.13.0 on PyPI requires it, for which another pin would leave nothing to install."""
    locked = pins(lines("requirements.lock"))
    assert (locked["torch"], locked["triton"]) == ("2.13.0", "3.7.1")


def test_what_flash_attn_builds_with_is_installed_before_it():
    """Without isolation nothing is installed for the build: setup.py imports packaging, psutil, setuptools, torch and
    wheel, and ninja compiles; setuptools is a requirement of torch."""
    assert {"packaging", "psutil", "ninja", "torch"} <= pins(lines("requirements.lock")).keys()
    places = "environment.yml", "requirements-flash.txt", "docker/gpu.Dockerfile"
    texts = {file: (ROOT / file).read_text() for file in places}
    assert len({version for text in texts.values() for version in re.findall(r"\bwheel==(\S+)", text)}) == 1
    for file, text in texts.items():
        assert text.index("wheel==") < text.index("--no-build-isolation"), file


def instructions(file) -> list[tuple[str, str]]:
    """(keyword, the rest) of each of a Dockerfile's, comments left out and continued lines joined."""
    text = "\n".join(line for line in file.read_text().splitlines() if not line.lstrip().startswith("#"))
    joined = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined if line.strip()]


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.stem)
class TestDockerfile:
    def test_begins_with_a_tagged_image_and_ends_in_the_repository(self, file):
        found = instructions(file)
        (image,) = (rest for keyword, rest in found if keyword == "FROM")
        assert re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", image) and not image.endswith(":latest")
        assert [rest for keyword, rest in found if keyword == "WORKDIR"] == ["/dprope"]
        assert found[-3:] == [("COPY", ". ."), ("RUN", "touch .venv/.installed"), ("CMD", '["bash"]')]

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


def test_an_image_of_either_kind_is_described():
    assert [file.stem for file in DOCKERFILES] == ["cpu", "gpu"]


def test_what_a_build_leaves_behind_is_not_sent_to_it():
    ignored = set(lines(".dockerignore"))
    assert {".venv", "build", "runs", "checkpoints"} <= ignored and ".git" not in ignored  # records name the commit


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.stem)
def test_the_header_says_how_to_build_it(file):
    """Each command of the comment names this file."""
    commented = [line[1:].strip() for line in file.read_text().splitlines() if line.startswith("#   docker build")]
    for command in commented:
        words = shlex.split(command)
        assert words[words.index("-f") + 1] == os.path.relpath(file, ROOT)
    assert commented
