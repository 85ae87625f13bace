"""Every table shows what was measured, of any method, options and model, or says that nothing was."""

import re
import shutil

import pytest

from analysis import rendering
from analysis.results import NotMeasured, Results, models
from experiments.kit.records import ROOT
from tables import disturbance, passkey
from tables.kit import command, latex, markdown, plain
from tests.analysis.made import score
from tests.tables.test_kit import compiled, fits

PAPER = [name for name, module in rendering.modules("tables").items() if ".beyond." not in module]
ABLATIONS = ("n_hat_longbench_e", "n_hat_open_llm", "intervals_longbench_e", "intervals_open_llm")


def names(table):
    return {row[0].text for block in table.blocks for row in block.rows}


@pytest.mark.parametrize("name", [name for name in PAPER if name not in ABLATIONS])
def test_any_method_and_any_model_reach_every_table(everything, name):
    table = command.build(name, everything.results())
    assert table.name == name and any("A Model" in block.title or not block.title for block in table.blocks)
    assert any(text.startswith("Linear ramp (slope = 0.5)") for text in names(table)), names(table)
    if name != "disturbance":  # of registered methods alone
        assert any(text.startswith("Never-heard-of (strength = 3)") for text in names(table)), names(table)
    for back_end in (latex, markdown, plain):
        assert back_end.render(table)


@pytest.mark.parametrize("name", ABLATIONS)
def test_ablations_go_through_an_options_values(varied, name):
    table = command.build(name, varied.results())
    assert table.name == name and {"10", "20"} <= names(table)


@pytest.mark.parametrize("name", command.names())
def test_a_model_without_records_says_so(made, name):
    with pytest.raises(NotMeasured) as told:
        command.build(name, made.results())
    for hint in re.findall("`(.*?)`", str(told.value)):
        assert "--limit all" in hint or ("--model" in hint and "--results" in hint)


def test_disturbance_marks_the_least_and_counts_dimensions_of_methods_that_choose(made):
    ways = [("float32", "released"), ("float64", "released"), ("float64", "equation")]
    for factor in (2, 4):
        for method, average in (("pi", 2e-3), ("dprope", 1e-3), ("never-heard-of", 0.0)):
            scores = [
                {"precision": precision, "convention": convention, "average": average, "interpolated_dimensions": 30}
                for precision, convention in ways
            ]
            made.add("disturbance", method, scores, factor=factor)
    (block,) = disturbance.build(made.results()).blocks
    assert block.header == (
        "Method",
        *(f"{n}, {way}" for n in ("16k", "32k") for way in ("code, f32", "code, f64", "Eq. (7)")),
    )
    pi, ours = block.rows
    assert [(cell.text, cell.small, cell.bold) for cell in pi[1:]] == [("2.00", "", False)] * 6
    assert [(cell.text, cell.small, cell.bold) for cell in ours[1:]] == [("1.00", "(30)", True)] * 6


def test_passkeys_are_found_of_asked_with_the_shares_interval(made):
    for method, means in (("pi", (0.0, 0.25)), ("yarn", (1.0, 1.0))):
        rows = [{"length": n} | score(mean, 0.1, 4) for n, mean in zip((8192, 16384), means)]
        made.add("passkey", method, {"by_length": rows})
    made.add("passkey", "dprope", {"by_length": rows}, options={"n_hat": 28}, same_selection_as="x")
    made.add("passkey", "dprope", {"by_length": rows}, options={"n_hat": 48})  # of the ablation, not of the comparison
    (block,) = passkey.build(made.results()).blocks
    assert block.header == ("Method", "8k", "16k", "all")
    assert [cell.text for cell in block.rows[0]] == ["PI (s = 2)", "0/4", "1/4", "1/8"]
    assert block.rows[0][2].small == "[15, 35]" and len(block.rows) == 2


def test_committed_tables_are_what_the_records_give():
    """Byte by byte, and each of the paper's ten among them."""
    paper = set()
    for model in models():
        results, folder = Results.of(model), ROOT / "tables" / model
        expected = {}
        for name, module in rendering.modules("tables").items():
            try:
                table = command.build(name, results)
            except NotMeasured:
                continue
            expected[f"{rendering.place(module)}.tex"] = latex.render(table)
            paper.add(table.paper)
        committed = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.tex")}
        assert committed.keys() == expected.keys(), model
        for name, text in expected.items():
            assert committed[name] == text, f"{model}, {name}"
    assert {f"Table {number}" for number in range(1, 11)} <= paper


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a LaTeX installation")
def test_tables_compile_and_fit_their_page(tmp_path):
    said = compiled(tmp_path, [file.read_text() for file in sorted((ROOT / "tables").rglob("*.tex"))])
    fits(said)
