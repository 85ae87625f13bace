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

ABLATIONS = ("n_hat_longbench_e", "n_hat_open_llm", "intervals_longbench_e", "intervals_open_llm")


@pytest.fixture
def everything(recorder, monkeypatch):
    """Every experiment of a registered, a stranger's and an unknown method, at a factor that no
    list has."""

    def linear_ramp(geometry, factor, *, slope: float = 1.0):
        weight = np.clip(np.linspace(0, slope, geometry.pairs), 0, 1)
        return rope.RopeScaling(geometry.inv_freq / (1 + weight * (factor - 1)), 1.0, weight == 1)

    monkeypatch.setitem(
        rope.METHODS, "linear-ramp", rope.Method("linear-ramp", "Linear ramp", linear_ramp)
    )
    settings = [
        ("original", {}),
        ("yarn", {}),
        ("linear-ramp", {"slope": 0.5}),
        ("never-heard-of", {"strength": 3}),
    ]
    for method, options in settings:
        recorder.everything(method, options, factor=3)
        if method != "original":
            recorder.everything(method, options, factor=3, seed=7, better=0.5)
    cell = {"rounds": 3, "relative_to_pi": 1.0, "low": 0.9, "high": 1.1, "phase": "train"}
    times = [
        cell | {"method": method, "options": options, "again": False}
        for method, options in settings
    ]
    recorder.add("time_cost", None, {"rows": times}, factor=3, length=512)
    recorder.learned("yarn", factor=3, better=0.7)
    recorder.facts["factors"] = [2]
    for experiment in ("open_llm", "longbench_e"):
        like = next(
            r
            for f, r in recorder.records.items()
            if f.startswith(experiment) and "training" not in r["run"]
        )
        for options in ({"n_hat": 10}, {"n_hat": 20}, {"intervals": 10}, {"intervals": 20}):
            run = like["run"] | {"method": "dprope", "options": options}
            recorder.records[f"{experiment}/{options}.json"] = like | {"run": run}
    return recorder


def test_any_method_and_any_model_reach_every_table(everything):
    measured = everything.results()
    for name in drawing.modules("tables"):
        table = drawn_table(name, measured)
        names = {row[0].text for block in table.blocks for row in block.rows}
        assert table.name == name and any(
            "A Model" in block.title or not block.title for block in table.blocks
        )
        if name == "disturbance":  # of registered methods, at their defaults
            assert "Linear ramp" in names
            continue
        starts = (
            ("10", "20")
            if name in ABLATIONS
            else ("Linear ramp (slope = 0.5)", "Never-heard-of (strength = 3)")
        )
        assert all(any(text.startswith(start) for text in names) for start in starts), names


@pytest.mark.parametrize("method", [None, "yarn", "factors", "never-heard-of"])
def test_one_experiment_alone_makes_whole_tables_and_figures_and_a_line_names_the_rest(
    tmp_path, call, method
):
    """Of a model as it is, under a method, and under factors from a file."""
    recorder = Recorder(tmp_path, factors=[1])  # so that no disturbance is computed
    recorder.everything(
        method, {"file": "f.json"} if method == "factors" else {}, factor=2 if method else 1
    )
    for file, record in recorder.records.items():
        alone = Recorder(tmp_path / file, factors=[1])
        alone.records[file] = record
        results = alone.results()
        shown = set()
        for kind, build in (("tables", drawn_table), ("figures", figure)):
            for name in drawing.modules(kind):
                with contextlib.suppress(NotMeasured):
                    assert (
                        build(name, results) if kind == "figures" else build(name, results).blocks
                    )
                    shown.add(name)
        assert {file.partition("/")[0]} & {
            *drawing.modules("tables")
        } <= shown or method == "factors"
    status, out, _ = call("tables.__main__", "--results", results.folder)
    left_out, _, _ = out.splitlines()[-1].partition(";")
    assert status == 0
    for name in drawing.modules("tables"):
        assert (name in left_out) != (name in shown), name


@pytest.mark.parametrize("folder", ["whole", "a-quick"])
def test_a_quick_run_is_called_a_sketch_with_its_size_and_has_no_interval_and_no_best(
    tmp_path, folder
):
    recorder = Recorder(tmp_path / folder)
    documents = {"documents": 7, "sha256": "hash"}
    for method, mean in (("pi", 40.0), ("yarn", 50.0)):
        recorder.add(
            "open_llm", method, {"tasks": {"average": score(mean)}}, data={"mmlu": documents}
        )
        both = {"mmlu": documents, "arc_challenge": documents}
        tuned = {"steps": 3}
        recorder.add(
            "open_llm",
            method,
            {"tasks": {"average": score(mean)}},
            seed=0,
            training=tuned,
            data=both,
        )
    table = drawn_table("open_llm", recorder.results())
    measured = [cell for block in table.blocks[2:] for row in block.rows for cell in row]
    assert {cell.text for cell in measured} >= {"40.0", "50.0"}
    quick = folder == "a-quick"
    for written in (markdown.render(table), latex.render(table)):
        assert ("sketch of 3 training steps and 14 items" in written) == quick
    assert any(cell.small for cell in measured) == any(cell.bold for cell in measured) != quick


def test_committed_tables_are_what_the_records_give():
    """Byte by byte those of tiny, which has each of the paper's ten; the pages show those of every
    model."""
    folder = ROOT / "tables" / "tiny"
    expected = {}
    paper = set()
    tiny = Results.of("tiny")
    for name in drawing.modules("tables"):
        table = drawn_table(name, tiny)
        file = drawing.place("tables", name, tiny).with_suffix(".tex")
        expected[str(file.relative_to(folder))] = latex.render(table)
        paper.add(table.paper)
    assert {
        str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.tex")
    } == expected
    assert {f"Table {number}" for number in range(1, 11)} <= paper


@needs_latex
def test_committed_tables_compile_and_fit_their_page(tmp_path):
    fits(
        compiled(tmp_path, [file.read_text() for file in sorted((ROOT / "tables").rglob("*.tex"))])
    )
