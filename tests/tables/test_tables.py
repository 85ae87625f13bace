"""Every table shows what was measured, of any method, options and model, or says that nothing
was."""

import contextlib

import numpy as np
import pytest

from analysis import drawing
from analysis.results import NotMeasured, Results
from core import rope
from experiments.kit.records import ROOT
from figures.kit.draw import figure
from tables.kit import latex, markdown
from tables.kit.draw import table as drawn_table
from tests.analysis.recorder import Recorder, score
from tests.tables.test_kit import compiled, fits, needs_latex

STRANGERS = {"linear-ramp": {"slope": 0.5}, "never-heard-of": {"strength": 3}}


@pytest.fixture
def everything(recorder, monkeypatch):
    """Every experiment of a registered, a stranger's and an unknown method, at a factor that no
    list has."""

    def linear_ramp(geometry, factor, *, slope: float = 1.0):
        weight = np.clip(np.linspace(0, slope, geometry.pairs), 0, 1)
        return rope.RopeScaling(geometry.inv_freq / (1 + weight * (factor - 1)), 1.0, weight == 1)

    registered = rope.Method("linear-ramp", "Linear ramp", linear_ramp)
    monkeypatch.setitem(rope.METHODS, "linear-ramp", registered)
    times = []
    for method, options in ({"original": {}, "yarn": {}} | STRANGERS).items():
        recorder.everything(method, options, factor=3)
        recorder.everything(method, options, factor=3, seed=7, better=0.5)
        cell = {"rounds": 3, "relative_to_pi": 1.0, "low": 0.9, "high": 1.1, "phase": "train"}
        times.append(cell | {"method": method, "options": options, "again": False})
    recorder.add("time_cost", None, {"rows": times}, factor=3, length=512)
    recorder.learned("yarn", factor=3, better=0.7)
    for options in ({"n_hat": 10}, {"n_hat": 20}, {"intervals": 10}, {"intervals": 20}):
        recorder.everything("dprope", options, factor=3)
    return recorder


def test_any_method_and_any_model_reach_every_table(everything):
    measured = everything.results()
    for name in drawing.declared("tables"):
        table = drawn_table(name, measured)
        assert table.name == name
        names = [row[0].text for block in table.blocks for row in block.rows]
        expected = ["Linear ramp (slope = 0.5)", "Never-heard-of (strength = 3)"]
        if name.startswith(("n_hat", "intervals")):
            expected = ["10", "20"]
        if name == "disturbance":  # of registered methods, at their defaults
            expected = ["Linear ramp"]
        for start in expected:
            assert any(text.startswith(start) for text in names), (name, names)


@pytest.mark.parametrize("method", [None, "yarn", "factors", "never-heard-of"])
def test_one_experiment_alone_makes_whole_tables_and_figures_and_a_line_names_the_rest(
    tmp_path, call, method
):
    """Of a model as it is, under a method, and under factors from a file."""
    recorder = Recorder(tmp_path, factors=[1])  # so that no disturbance is computed
    options = {"file": "f.json"} if method == "factors" else {}
    recorder.everything(method, options, factor=2 if method else 1)
    for file, record in recorder.records.items():
        alone = Recorder(tmp_path / file, factors=[1])
        alone.records[file] = record
        results = alone.results()
        shown = set()
        for name in drawing.declared("figures"):
            with contextlib.suppress(NotMeasured):
                assert figure(name, results)
        for name in drawing.declared("tables"):
            with contextlib.suppress(NotMeasured):
                assert drawn_table(name, results).blocks
                shown.add(name)
        experiment, _, _ = file.partition("/")
        assert experiment in shown or method == "factors"
    status, out, _ = call("tables.__main__", "--results", results.folder)
    left_out, _, _ = out.splitlines()[-1].partition(";")
    assert status == 0
    for name in drawing.declared("tables"):
        assert (name in left_out) != (name in shown), name


@pytest.mark.parametrize("folder", ["whole", "a-quick"])
def test_a_quick_run_is_called_a_sketch_and_has_no_interval_and_no_best(tmp_path, folder):
    recorder = Recorder(tmp_path / folder)
    documents = {"documents": 7, "sha256": "hash"}
    data = {"mmlu": documents, "arc_challenge": documents}
    for method, mean in (("pi", 40.0), ("yarn", 50.0)):
        scores = {"tasks": {"average": score(mean)}}
        recorder.add("open_llm", method, scores, data=data)
        recorder.add("open_llm", method, scores, data=data, seed=0, training={"steps": 3})
    table = drawn_table("open_llm", recorder.results())
    measured = [cell for block in table.blocks[2:] for row in block.rows for cell in row]
    assert {cell.text for cell in measured} >= {"40.0", "50.0"}
    quick = folder == "a-quick"
    for written in (markdown.render(table), latex.render(table)):
        assert ("A sketch of 3 training steps and 14 items, which decides" in written) == quick
    assert any(cell.small for cell in measured) == any(cell.bold for cell in measured) != quick


def test_committed_tables_are_what_the_records_give():
    """Byte by byte those of tiny, which has each of the paper's ten; the pages show those of every
    model."""
    tiny = Results.of("tiny")
    tables = {name: drawn_table(name, tiny) for name in drawing.declared("tables")}
    expected = {
        drawing.place("tables", name, tiny).with_suffix(".tex"): latex.render(table)
        for name, table in tables.items()
    }
    files = (ROOT / "tables" / "tiny").rglob("*.tex")
    assert {file: file.read_text() for file in files} == expected
    paper = {table.paper for table in tables.values()}
    assert {f"Table {number}" for number in range(1, 11)} <= paper


@needs_latex
def test_committed_tables_compile_and_fit_their_page(tmp_path):
    files = sorted((ROOT / "tables").rglob("*.tex"))
    fits(compiled(tmp_path, [file.read_text() for file in files]))
