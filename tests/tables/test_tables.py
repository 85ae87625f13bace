"""Every table shows what was measured, of any method, options and model, or says that nothing
was."""

import contextlib
import re
from pathlib import Path

import pytest

from analysis import drawing
from analysis.results import NotMeasured, Results
from figures.kit.draw import figure
from tables.kit import latex, markdown
from tables.kit.draw import table as drawn_table
from tests.analysis.recorder import Recorder, score

STRANGERS = {"linear-ramp": {"slope": 0.5}, "never-heard-of": {"strength": 3}}


def test_any_method_and_any_model_reach_every_table(recorder):
    """At a factor that no list has."""
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
    measured = recorder.results()
    for name in drawing.declared("tables").keys() - {"disturbance"}:
        blocks = drawn_table(name, measured).blocks
        names = "\n".join(row[0].text for block in blocks for row in block.rows)
        ablation = name.startswith(("n_hat", "intervals"))
        for start in ("10", "20") if ablation else ("Linear-ramp (slope", "Never-heard-of (str"):
            assert re.search(rf"^{re.escape(start)}", names, re.MULTILINE), (name, names)


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
        for name in drawing.declared("figures"):
            with contextlib.suppress(NotMeasured):
                assert figure(name, results)
        status, out, _ = call("tables.__main__", "--results", results.folder)
        assert status == 0
        *written, last = out.splitlines()
        shown = {Path(name).stem for name in written}
        left_out, _, _ = last.partition(";")
        assert shown.isdisjoint(re.findall(r"\w+", left_out))
        experiment, _, _ = file.partition("/")
        assert experiment in shown or method == "factors"


@pytest.mark.parametrize("name", ["loss_by_position", "needles", "passkey", "ruler"])
def test_a_row_of_fewer_seeds_than_others_says_so(recorder, name):
    """The title has the most that a row has."""
    for method, seeds in (("yarn", (0, 1, 2)), ("pi", (0,))):
        for seed in seeds:
            recorder.everything(method, seed=seed)
    *_, block = drawn_table(name, recorder.results()).blocks
    pi, yarn = (row[0].text for row in block.rows)
    assert pi.endswith(", one seed") and "seed" not in yarn


@pytest.mark.parametrize("name", ["loss_by_position", "needles", "ruler"])
def test_rows_of_one_factor_that_trained_longer_say_so(recorder, name):
    """Those of another factor may have other steps throughout."""
    for method, factor, steps in (("yarn", 2, 64), ("pi", 2, 1000), ("ntk", 4, 32)):
        recorder.everything(method, factor=factor, seed=0)
        for record in list(recorder.records.values())[-7:]:
            record["run"]["training"]["steps"] = steps
    blocks = drawn_table(name, recorder.results()).blocks
    names = {row[0].text for block in blocks for row in block.rows if "publ" not in block.title}
    plain = {each.replace(" (s = 2)", "").replace(" (s = 4)", "") for each in names}
    assert plain == {"YaRN, 64 steps", "PI, 1,000 steps", "NTK-aware"}


@pytest.mark.parametrize("name", ["loss_by_position", "needles"])
@pytest.mark.parametrize(
    "method, factor, says", [(None, 1, "8k, read to 16,384"), ("pi", 2, "s = 2, 8k to 16k")]
)
def test_a_model_as_it_is_has_no_factor_and_is_read_beyond_its_length(
    recorder, name, method, factor, says
):
    recorder.everything(method, factor=factor)
    (block,) = drawn_table(name, recorder.results()).blocks
    assert block.title.startswith(f"A Model, {says}, without training")


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
        assert ("A sketch, which decides" in written) == quick
    assert any(cell.small for cell in measured) == any(cell.bold for cell in measured) != quick


def test_committed_tables_are_what_the_records_give():
    """Byte by byte those of tiny, which has each of the paper's ten; the pages show those of every
    model."""
    tiny = Results.of("tiny")
    tables = {name: drawn_table(name, tiny) for name in drawing.declared("tables")}
    for name, table in tables.items():
        file = drawing.place("tables", name, tiny).with_suffix(".tex")
        assert file.read_text() == latex.render(table)
    paper = {table.paper for table in tables.values()}
    assert {f"Table {number}" for number in range(1, 11)} <= paper


@pytest.mark.parametrize("experiment", ["passkey", "ruler", "loss_by_position"])
def test_a_title_names_a_precision_that_is_not_float32(recorder, experiment):
    of_both = {}
    for dtype in ("float32", "bfloat16"):
        recorder.records = {}
        recorder.everything("yarn")
        for file, record in recorder.records.items():
            record["run"]["dtype"] = dtype
            record["comparable"] = [*record["comparable"], "dtype"]
            of_both[file.replace(".json", f"-{dtype}.json")] = record
    recorder.records = of_both
    blocks = drawn_table(experiment, recorder.results()).blocks
    measured = [block.title for block in blocks if "A Model" in block.title]
    assert sorted(", in bfloat16" in title for title in measured) == [False, True]


def test_keys_that_nobody_asked_for_are_no_share(recorder):
    """Of a record with keys within L alone."""
    recorder.keys("yarn", {"A Book": [1.0, 1.0]}, distances=(9, 9))
    (block,) = drawn_table("needles", recorder.results()).blocks
    (row,) = block.rows
    found = [cell.text for head, cell in zip(block.header, row) if head.startswith("found")]
    assert found == ["2 of 2", "–"]
