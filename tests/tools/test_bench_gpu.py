"""Each part of the GPU bench runs at toy size on a CPU, and its rows say what is independent of the machine."""

import csv
import importlib
import os
import subprocess

import pytest

from experiments.kit import command_line
from experiments.kit.records import ROOT


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """ran("loss") -> {(what, engine): [values]} of a part at toy size."""

    def run(name):
        file = tmp_path / "rows.csv"
        monkeypatch.setattr("sys.argv", [name, "--toy", "--output", str(file)])
        command_line.run(importlib.import_module(f"tools.bench.gpu.{name}").main)
        with open(file, encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        assert all(row["device"] and "torch=" in row["versions"] and row["commit"] for row in rows)
        found = {}
        for row in rows:
            found.setdefault((row["what"], row["engine"]), []).append(row["value"])
        return found

    return run


def test_loss(ran):
    found = ran("loss")
    for tokens in (32, 64):
        for of in ("the loss", "d hidden", "d weight"):
            ((apart,),) = (found[f"{of}, {tokens} tokens, relative distance to plain", "chunked"],)
            assert float(apart) < 1e-5
        assert float(found[f"loss and its gradients, {tokens} tokens", "chunked"][0]) > 0


def test_serve(ran):
    found = ran("serve")
    assert len(found) == 4 and all(float(value) > 0 for values in found.values() for value in values)


def test_memory(ran):
    found = ran("memory")
    assert found["generation, halvings", "eval.generation"] == ["3"]  # 7 → 3 and 4; each of them once more
    assert found["generation, answers of 7 equal after halving", "eval.generation"] == ["7"]
    assert found["log-likelihoods, halvings", "eval.log_likelihood"] == ["2"]  # 7 → 3 → 1
    assert float(found["log-likelihoods, largest difference after halving", "eval.log_likelihood"][0]) < 1e-4


def script(*arguments, python, **environment):
    command = ["bash", str(ROOT / "tools" / "bench" / "gpu.sh"), *arguments]
    variables = os.environ | {"PYTHON": str(python)} | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


@pytest.fixture
def python(tmp_path):
    """An interpreter that says what it was given, and fails where that is the part `serve`."""
    file = tmp_path / "python"
    file.write_text('#!/bin/sh\necho "given $*"\ncase "$*" in *serve*) exit 1;; esac\n')
    file.chmod(0o755)
    return file


def test_the_script_runs_the_parts_by_name_and_a_failed_one_does_not_stop_the_others(python):
    done = script("loss", "serve", "dtype", "--toy", python=python)
    given = [line for line in done.stdout.splitlines() if line.startswith("given")]
    assert given == [f"given -m tools.bench.gpu.{name} --toy" for name in ("loss", "serve", "dtype")]
    assert done.returncode == 1 and "serve" in done.stdout.splitlines()[-1]
    assert script("loss", python=python).returncode == 0


def test_the_script_runs_every_module_of_the_bench_and_refuses_what_is_none(python):
    given = script("--toy", python=python).stdout
    parts = {f"tools.bench.gpu.{file.stem}" for file in (ROOT / "tools" / "bench" / "gpu").glob("[a-z]*.py")} - {
        "tools.bench.gpu.kit"
    }
    assert {line.split()[2] for line in given.splitlines() if line.startswith("given")} == parts
    wrong = script("lossy", python=python)
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ") and len(wrong.stderr.splitlines()) == 1
