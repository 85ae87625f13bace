"""The tasks of CONTRIBUTING.md, done as they are described there; that of a method is in tests/beyond."""

import json

import pytest

from core import rope
from experiments import base_models
from tests import strangers


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


def test_a_figure_is_one_file(call, results, tmp_path, monkeypatch):
    strangers.write("figures/cumulative.py", tmp_path, monkeypatch)
    assert call("disturbance", "--model", "smoke", "--method", "pi", rope.OURS, "--results", results)[0] == 0
    assert call("figures.kit.command", "cumulative", "--model", "smoke", "--results", results)[0] == 0
    assert (tmp_path / "figures" / "smoke" / "cumulative.pdf").read_bytes().startswith(b"%PDF")


def test_a_benchmark_is_an_experiment(call, results, tmp_path, monkeypatch):
    strangers.write("experiments/copying.py", tmp_path, monkeypatch)
    line = ("copying", "--model", "smoke", "--method", rope.ORIGINAL, rope.OURS, "--words", 2, "--results", results)
    assert call(*line)[0] == 0
    assert call("tables.kit.command", "copying", "--model", "smoke", "--results", results)[0] == 0
    table = (tmp_path / "tables" / "smoke" / "copying.tex").read_text()
    assert "copied" in table and "DPRoPE" in table


def test_a_base_model_is_a_file_and_its_suite_another(call, results, tmp_path, monkeypatch):
    strangers.write("experiments/base_models/mine.py", tmp_path, monkeypatch)
    strangers.write("experiments/suites/mine.py", tmp_path, monkeypatch)
    monkeypatch.setitem(base_models.MODELS, "mine", base_models.found()["mine"])
    status, out, _ = call("rerun", "--model", "mine", "--list")
    assert status == 0 and "experiments.perplexity --model mine --method dprope" in out
    line = ("perplexity", "--model", "mine", "--method", rope.OURS, "--lengths", 512, 1024, "--tokens", 2048)
    assert call(*line, "--results", results)[0] == 0
    assert json.loads((results / "mine" / "model.json").read_text())["title"] == "My Llama"
    assert call("tables.kit.command", "perplexity", "--model", "mine", "--results", results)[0] == 0
    assert "My Llama" in (tmp_path / "tables" / "mine" / "perplexity.tex").read_text()
