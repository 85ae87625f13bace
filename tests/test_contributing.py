"""The four tasks of CONTRIBUTING.md, done as they are described there."""

import importlib
import json
import re

import pytest

import eval as harnesses
import experiments
import figures
from analysis.results import Results
from core import discovery, rope
from core.beyond import methods
from experiments import base_models, suites
from experiments.kit.records import ROOT

BLOCKS = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Where the files of a stranger lie; each package finds them as its own."""
    for package in (methods, harnesses, experiments, figures, base_models, suites):
        folder = tmp_path / package.__name__.replace(".", "/")
        folder.mkdir(parents=True)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])

    def write(file):
        (tmp_path / file).write_text(BLOCKS[file])
        importlib.invalidate_caches()

    return write


@pytest.fixture
def linear_ramp(checkout, monkeypatch):
    monkeypatch.setitem(rope.METHODS, "linear-ramp", None)  # which takes it away afterwards
    checkout("core/beyond/methods/linear_ramp.py")
    discovery.modules("core", "beyond.methods")


def test_a_method_reaches_command_line_records_tables_and_figures(linear_ramp, call, tmp_path):
    status, out, _ = call("extend", "--model", "tiny", "--method", "linear-ramp", "--start", "4")
    assert status == 0 and "divide by" in out
    results = tmp_path / "results"
    for method in ("linear-ramp", rope.ORIGINAL):
        line = ("passkey", "--model", "smoke", "--method", method, "--lengths", 1024, "--depths", 1, "--keys", 1)
        assert call(*line, "--results", results)[0] == 0
    assert call("disturbance", "--model", "smoke", "--factor", 2, "--results", results)[0] == 0
    assert call("tables.kit.command", "passkey", "disturbance", "--model", "smoke", "--results", results)[0] == 0
    for table in ("passkey", "disturbance"):
        assert "Linear ramp" in (tmp_path / "tables" / "smoke" / f"{table}.tex").read_text()
    assert call("figures.kit.command", "passkey", "--model", "smoke", "--results", results)[0] == 0
    figure = importlib.import_module("figures.passkey").build(Results.of("smoke", results))
    assert "Linear ramp" in {text.get_text() for legend in _legends(figure) for text in legend.get_texts()}
    assert ("linear-ramp", {}) in base_models.get("tiny").comparison(2)


def test_a_figure_is_one_file(checkout, call, tmp_path):
    checkout("figures/cumulative.py")
    results = tmp_path / "results"
    assert call("disturbance", "--model", "smoke", "--results", results)[0] == 0
    assert call("figures.kit.command", "cumulative", "--model", "smoke", "--results", results)[0] == 0
    assert (tmp_path / "figures" / "smoke" / "cumulative.pdf").read_bytes().startswith(b"%PDF")


def test_a_benchmark_is_a_harness_and_a_script(checkout, call, tmp_path):
    checkout("eval/copying.py")
    checkout("experiments/copying.py")
    results = tmp_path / "results"
    line = ("copying", "--model", "smoke", "--method", rope.ORIGINAL, rope.OURS, "--samples", 2, "--results", results)
    assert call(*line)[0] == 0
    assert call("tables.kit.command", "copying", "--model", "smoke", "--results", results)[0] == 0
    table = (tmp_path / "tables" / "smoke" / "copying.tex").read_text()
    assert "copied" in table and "DPRoPE" in table


def test_a_scale_is_a_file_and_its_suite_another(checkout, call, monkeypatch, tmp_path):
    checkout("experiments/base_models/mine.py")
    checkout("experiments/suites/mine.py")
    monkeypatch.setitem(base_models.MODELS, "mine", base_models.found()["mine"])
    status, out, _ = call("rerun", "--model", "mine", "--list")
    assert status == 0 and "experiments.perplexity --model mine --method dprope" in out
    results = tmp_path / "results"
    line = ("perplexity", "--model", "mine", "--method", rope.OURS, "--lengths", 512, 1024, "--tokens", 2048)
    assert call(*line, "--results", results)[0] == 0
    assert json.loads((results / "mine" / "model.json").read_text())["title"] == "My Llama"
    assert call("tables.kit.command", "perplexity", "--model", "mine", "--results", results)[0] == 0
    assert "My Llama" in (tmp_path / "tables" / "mine" / "perplexity.tex").read_text()


def _legends(figure):
    for part in (figure, *figure.subfigs):
        yield from part.legends
        yield from (axes.get_legend() for axes in part.axes if axes.get_legend())
