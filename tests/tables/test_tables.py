"""Every table shows what was measured, of any method, options and scale, or says that nothing was."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from analysis.results import NotMeasured, Results, scales
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution
from core.errors import InputError
from experiments.kit.records import ROOT
from tables import disturbance, passkey
from tables.beyond import loss_by_position, ruler_paired, unextended
from tables.kit import command, html, latex, markdown
from tests.analysis.made import score
from tests.tables.test_kit import compiled

ABLATIONS = {"n_hat", "n_hat_longbench_e", "n_hat_open_llm", "intervals_longbench_e", "intervals_open_llm"}
# Of the unextended model alone, or a line for each engine.
AS_IT_IS = {"benchmarks", "serving"}


@pytest.fixture
def toy(monkeypatch):
    """A method of a stranger's."""

    def linear_ramp(geometry, factor, *, slope: float = 1.0):
        weight = np.clip(np.linspace(0, slope, geometry.pairs), 0, 1)
        return rope.RopeScaling(geometry.inv_freq / (1 + weight * (factor - 1)), 1.0, weight == 1)

    monkeypatch.setitem(rope.METHODS, "linear-ramp", rope.Method("linear-ramp", "Linear ramp", linear_ramp))
    return "linear-ramp"


def names(table):
    return {row[0].text for block in table.blocks for row in block.rows}


def everything(made, toy):
    """Every experiment of a registered and of an unknown method, at a factor that no list has."""
    settings = [("original", {}), ("yarn", {}), (toy, {"slope": 0.5}), (toy, {"slope": 0.5, "attention_factor": 1.2})]
    settings += [("never-heard-of", {"strength": 3})]
    for method, options in settings:
        made.everything(method, options, factor=3)
        if method != "original":
            made.everything(method, options, factor=3, seed=7, better=0.5)
    way = {"precision": "float64", "convention": "released", "average": 1e-3, "interpolated_dimensions": 2}
    made.add("disturbance", None, [way | {"method": m, "options": o} for m, o in settings], factor=3)
    made.learned("yarn", factor=3, better=0.7)
    cell = {"rounds": 3, "relative_to_pi": 1.0, "low": 0.9, "high": 1.1, "phase": "train"}
    made.add(
        "time_cost",
        None,
        [cell | {"method": m, "options": o, "again": False} for m, o in settings],
        factor=3,
        length=512,
    )


@pytest.mark.parametrize("name", command.names())
def test_any_method_and_any_scale_reach_every_table(made, toy, name):
    everything(made, toy)
    if name in ABLATIONS:
        for experiment in ("loss_by_position", "open_llm", "longbench_e"):
            template = next(r for f, r in made.records.items() if f.startswith(experiment) and "training" not in r)
            for options in ({"n_hat": 10}, {"n_hat": 20}, {"intervals": 10}, {"intervals": 20}):
                made.records[f"{experiment}/{options}.json"] = template | {"method": "dprope", "options": options}
    results = made.results()
    table = command.build(name, results)
    assert (
        table.name == name
        and table.caption
        and any("A Model" in block.title or not block.title for block in table.blocks)
    )
    if name in ABLATIONS:
        assert {"10", "20"} <= names(table)
    elif name not in AS_IT_IS:
        shown = names(table)
        assert any(text.startswith("Linear ramp (slope = 0.5)") for text in shown), shown
        if name not in ("temperature", "disturbance"):  # one is of known methods, one of registered ones
            assert any(text.startswith("Never-heard-of (strength = 3)") for text in shown), shown
    for back_end in (latex, html, markdown):
        assert back_end.render(table)


@pytest.mark.parametrize("name", command.names())
def test_a_scale_without_records_says_so(made, name):
    with pytest.raises(NotMeasured):
        command.build(name, made.results())


def test_an_unknown_table_is_named(made):
    with pytest.raises(InputError, match="no_such"):
        command.build("no_such", made.results())


def test_every_table_of_the_paper_has_one_here():
    found = set()
    for name in command.names():
        for scale in scales():
            try:
                found.add(command.build(name, Results.of(scale)).paper)
            except NotMeasured:
                continue
    assert {name for name in found if name.startswith("Table")} == {f"Table {number}" for number in range(1, 11)}


def test_disturbance_marks_the_least_and_counts_dimensions_of_methods_that_choose(made):
    way = {"interpolated_dimensions": 30}
    for factor in (2, 4):
        entries = [
            way
            | {"precision": precision, "convention": convention, "method": method, "options": {}, "average": average}
            for precision, convention in (("float32", "released"), ("float64", "released"), ("float64", "equation"))
            for method, average in (("pi", 2e-3), ("dprope", 1e-3))
        ]
        made.add("disturbance", None, entries, factor=factor)
    (block,) = disturbance.build(made.results()).blocks
    assert block.groups == (("16k", 3), ("32k", 3)) and "paper" not in block.header
    pi, ours = block.rows
    assert [(cell.text, cell.small, cell.bold) for cell in pi[1:]] == [("2.00", "", False)] * 6
    assert [(cell.text, cell.small, cell.bold) for cell in ours[1:]] == [("1.00", "(30)", True)] * 6


def test_the_papers_geometry_has_the_papers_column():
    (block,) = disturbance.build(Results.of("llama2-7b")).blocks
    assert block.header[1] == "paper" and next(row for row in block.rows if row[0].text == "PI")[1].text == "24.08"


def test_extension_shows_the_records_and_marks_the_best(made):
    """Two methods, one book, two blocks a range."""
    for method, losses in (("original", [1, 1, 3, 5, 7, 7]), ("yarn", [1.5, 1.5, 2, 2, 3, 3])):
        spans = [(0, 8192), (8192, 12288), (12288, 16384)]
        ranges = [
            {"start": a, "end": b, "mean": float(np.mean(pair)), "low": min(pair), "high": max(pair)}
            for (a, b), pair in zip(spans, np.reshape(losses, (3, 2)).tolist())
        ]
        made.add(
            "loss_by_position",
            method,
            data={"A_Book": 1},
            length=16384,
            ranges=ranges,
            block=4096,
            blocks={"A": losses},
        )
    (block,) = loss_by_position.build(made.results()).blocks
    original, yarn = block.rows
    assert block.header[2:5] == ("0–8k", "8–12k", "12–16k") and "A_Book" in block.title
    assert [cell.text for cell in original] == [
        "Original",
        "226.34",
        "1.000",
        "4.000",
        "7.000",
        "+3.000",
    ]  # (1, 3, 4, 4)
    assert [cell.text for cell in yarn[2:]] == ["1.500", "2.000", "3.000", "–"]
    assert [[cell.bold for cell in row[2:5]] for row in block.rows] == [[True, False, False], [False, True, True]]


def test_extension_has_two_blocks_for_each_factor(made):
    for factor in (2, 16):
        for method in ("yarn", "pi"):
            made.everything(method, factor=factor)
        made.everything("pi", factor=factor, seed=0, better=1.0)
        made.everything("yarn", factor=factor, seed=0, better=3.0)
    blocks = loss_by_position.build(made.results()).blocks
    assert [len(block.rows) for block in blocks] == [2] * 4
    assert [re.search(r"s = (\d+)", block.title)[1] for block in blocks] == ["2", "2", "16", "16"]
    pi, yarn = blocks[3].rows
    assert pi[-1].text == "+2.000" and yarn[-1].text == "–"  # paired with the fine-tuned rival
    assert [cell.bold for cell in yarn[2:5]] == [True] * 3 and not any(cell.bold for cell in pi)
    inv_freq = made.results().scale.geometry.inv_freq
    moved = kl.disturbance(angle_distribution(inv_freq / 16, 16 * 8192), angle_distribution(inv_freq, 8192))
    assert float(blocks[2].rows[0][1].text) == pytest.approx(1e3 * moved.mean(), abs=0.005)  # at that factor


def test_passkeys_are_found_of_asked_with_the_shares_interval(made):
    for method, means in (("pi", (0.0, 0.25)), ("yarn", (1.0, 1.0))):
        rows = [{"length": n} | score(mean, 0.1, 4) for n, mean in zip((8192, 16384), means)]
        made.add("passkey", method, {"by_length": rows})
    made.add("passkey", "dprope", {"by_length": rows}, options={"n_hat": 48}, same_selection_as="x")
    (block,) = passkey.build(made.results()).blocks
    assert block.header == ("Method", "8k", "16k", "all")
    assert [cell.text for cell in block.rows[0]] == ["PI (s = 2)", "0/4", "1/4", "1/8"]
    assert block.rows[0][2].small == "[15, 35]" and len(block.rows) == 2


def test_ruler_paired_with_the_rival_and_with_the_untrained(made):
    made.everything("yarn")
    made.everything("pi", better=-10)
    made.everything("pi", seed=0, better=5)
    made.everything("yarn", seed=0, better=10)
    made.everything("clex", seed=0)
    untrained, tuned = ruler_paired.build(made.results()).blocks
    assert [cell.text for cell in untrained.rows[0]] == ["PI", "−10.0", "0 : 4", "0.12"]
    assert [cell.text for cell in untrained.rows[1]] == ["YaRN", "–", "–", "–"]
    pi, yarn, clex = tuned.rows
    assert [cell.text for cell in pi] == ["PI", "−5.0", "0 : 4", "0.12", "+15.0", "4 : 0", "0.12"]
    assert [cell.text for cell in yarn[1:4]] == ["–"] * 3 and yarn[4].text == "+10.0"
    assert [cell.text for cell in clex[4:]] == ["–"] * 3


def test_nothing_to_pair_with_is_not_measured(made):
    made.everything("pi")
    with pytest.raises(NotMeasured):
        ruler_paired.build(made.results())


def test_the_model_as_it_is_on_every_benchmark(made):
    made.everything("original")
    (block,) = unextended.build(made.results()).blocks
    found = {row[0].text: (row[1].text, row[2].text) for row in block.rows}
    assert found["MMLU"] == ("5 items", "40.0") and found["Passkeys, 16k"] == ("4 prompts", "50")
    assert found["Perplexity by window, 8k"] == ("2 windows, 16,384 tokens", "21.00")
    assert found["RULER, 8k"] == ("6 prompts of 2 tasks", "50.0")


def test_committed_tables_are_what_the_records_give():
    for scale in scales():
        results, folder = Results.of(scale), ROOT / "tables" / scale
        for name in command.names():
            try:
                text = latex.render(command.build(name, results))
            except NotMeasured:
                assert not (folder / f"{name}.tex").exists(), f"{scale}, {name}"
                continue
            assert (folder / f"{name}.tex").read_text() == text, f"{scale}, {name}"


def test_outputs_of_one_scale_leave_those_of_another_alone(made, monkeypatch, capsys):
    made.everything("pi")
    results = made.results("one")
    shutil.copytree(results.folder / "one", results.folder / "two")
    monkeypatch.setattr(sys, "argv", ["tables", "ruler", "--model", "two", "--results", str(results.folder)])
    command.main()
    written = sorted(Path(results.folder.parent / "tables").glob("*/*.tex"))
    assert [file.parent.name for file in written] == ["two"] and "ruler.tex" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a LaTeX installation")
def test_tables_compile_and_fit_their_page(tmp_path):
    said = compiled(tmp_path, [file.read_text() for file in sorted((ROOT / "tables").glob("*/*.tex"))])
    assert "Overfull \\hbox" not in said


@pytest.mark.parametrize("kind", ("tables", "figures"))
def test_rendering_needs_no_torch(kind):
    modules = [f"{kind}.{file.stem}" for file in sorted(Path(ROOT, kind).glob("[a-z]*.py"))]
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
