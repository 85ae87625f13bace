"""Tables beyond the paper show what was measured, of any method, options and model."""

import pytest

from analysis import rendering
from analysis.results import NotMeasured
from tables.beyond import ruler_paired
from tables.kit import command, latex, markdown, plain
from tests.tables.test_tables import names

BEYOND = [name for name, module in rendering.modules("tables").items() if ".beyond." in module]


@pytest.mark.parametrize("name", BEYOND)
def test_any_method_and_any_model_reach_every_table(everything, varied, name):
    everything.learned("yarn", factor=3, better=0.7)
    table = command.build(name, everything.results())
    assert table.name == name and any("A Model" in block.title for block in table.blocks)
    if name == "n_hat":
        assert {"10", "20"} <= names(table)
    elif name != "serving":  # a line for each engine
        assert any(text.startswith("Linear ramp (slope = 0.5)") for text in names(table)), names(table)
        if name != "temperature":  # of known methods alone
            assert any(text.startswith("Never-heard-of (strength = 3)") for text in names(table)), names(table)
    for back_end in (latex, markdown, plain):
        assert back_end.render(table)


def test_what_is_beyond_the_paper_is_written_below_it(made):
    made.everything("pi")
    results = made.results()
    rendered = command.write("loss_by_position", results, results.folder)
    assert rendered.files == [results.folder / "beyond" / "loss_by_position.tex"] and rendered.files[0].is_file()


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
