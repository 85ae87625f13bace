"""Differences to what was learned: paired by text, from the start whose factors came to the least
loss."""

from tables.beyond import learned


def cells(table, column):
    """By the first column's text, the number of another one."""
    (block,) = table.blocks
    index = block.header.index(column)
    return {row[0].text: row[index].text for row in block.rows}


def test_every_method_is_compared_with_the_best_of_what_was_learned(recorder):
    for method, better in (("yarn", 0.5), ("pi", 0.0), ("mrrope-pro", 0.6)):
        recorder.everything(method, better=better)
    recorder.learned("yarn", better=0.7, seeds=(0, 1))  # losses of 2.3 and 2.29
    recorder.learned("original", better=0.1, seeds=(0,))
    table = learned.build(recorder.results())
    beyond = cells(table, "Δ beyond L")
    assert beyond == {
        "Learned, from YaRN": "–",
        "MrRoPE-Pro": "+0.105",
        "YaRN": "+0.205",
        "Learned, from no scaling": "+0.605",
        "PI": "+0.705",
    }
    assert list(beyond) == [
        "Learned, from YaRN",
        "MrRoPE-Pro",
        "YaRN",
        "Learned, from no scaling",
        "PI",
    ]  # by loss
    assert (
        cells(table, "beyond L")["Learned, from YaRN"] == "2.295"
        and "from YaRN" in table.blocks[0].title
    )
    assert "still falling" not in table.caption
    recorder.records["learned/from=yarn_s=2_seed=0.json"]["scores"]["converged"] = False
    assert "still falling" in learned.build(recorder.results()).caption
