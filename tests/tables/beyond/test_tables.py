"""Tables beyond the paper show what was measured, of any method, options and model."""

import pytest

from analysis import rendering
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
