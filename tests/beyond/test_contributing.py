"""A method that is written as CONTRIBUTING.md describes it reaches the command line, records, tables and figures."""

import importlib

from analysis.results import Results
from core import discovery, rope
from experiments import base_models
from tests import strangers


def test_a_method_is_one_function(call, tmp_path, monkeypatch):
    monkeypatch.setitem(rope.METHODS, "linear-ramp", None)  # which takes it away afterwards
    strangers.write("core/beyond/methods/linear_ramp.py", tmp_path, monkeypatch)
    discovery.modules("core", "beyond.methods")
    status, out, _ = call("extend", "--model", "tiny", "--method", "linear-ramp", "--start", "4")
    assert status == 0 and "divide by" in out
    results = tmp_path / "results"
    methods = ("--model", "smoke", "--method", "linear-ramp", rope.ORIGINAL, "--factor", 2, "--results", results)
    assert call("passkey", *methods, "--lengths", 1024, "--depths", 1, "--keys", 1)[0] == 0
    assert call("disturbance", *methods)[0] == 0
    assert call("tables.kit.command", "passkey", "disturbance", "--model", "smoke", "--results", results)[0] == 0
    for table in ("passkey", "disturbance"):
        assert "Linear ramp" in (tmp_path / "tables" / "smoke" / f"{table}.tex").read_text()
    figure = importlib.import_module("figures.passkey").build(Results.of("smoke", results))
    legends = [legend for part in (figure, *figure.subfigs) for legend in part.legends]
    legends += [axes.get_legend() for part in (figure, *figure.subfigs) for axes in part.axes if axes.get_legend()]
    assert "Linear ramp" in {text.get_text() for legend in legends for text in legend.get_texts()}
    assert ("linear-ramp", {}) in base_models.get("tiny").comparison(2)
