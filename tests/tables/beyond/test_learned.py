"""Differences to what was learned: paired by text, from the start whose factors came to the least
loss."""

from tables.beyond.learned import learned


def test_every_method_is_compared_with_the_best_of_what_was_learned(recorder):
    for method, better in (("yarn", 0.5), ("pi", 0.0), ("mrrope-pro", 0.6)):
        recorder.everything(method, better=better)
    recorder.learned("yarn", better=0.7, seeds=(0, 1))  # losses of 2.3 and 2.29
    recorder.learned("original", better=0.1, seeds=(0,))
    table = learned(recorder.results())
    (block,) = table.blocks
    assert "from YaRN" in block.title
    assert block.header == ("Method", "within L", "beyond L", "Δ within L", "Δ beyond L")
    rows = [tuple(cell.text for cell in (row[0], row[2], row[4])) for row in block.rows]
    assert rows == [  # by loss
        ("Learned, from YaRN", "2.295", "–"),
        ("MrRoPE-Pro", "2.400", "+0.105"),
        ("YaRN", "2.500", "+0.205"),
        ("Learned, from no scaling", "2.900", "+0.605"),
        ("PI", "3.000", "+0.705"),
    ]
    assert "still falling" not in table.caption
    recorder.records["learned/from=yarn_s=2_seed=0.json"]["scores"]["converged"] = False
    assert "still falling" in learned(recorder.results()).caption


def test_learned_factors_are_shown_on_the_texts_on_which_they_were_scored(recorder):
    """Also where more methods were scored on others."""
    recorder.learned("yarn", seeds=(0,))
    for method in ("pi", "ntk", "yarn"):
        recorder.everything(method)
    for record in recorder.records.values():
        if record["run"]["method"] != "factors":
            record["run"]["data"] = {"Another Book": "hash"}
    (block,) = learned(recorder.results()).blocks
    assert [row[0].text for row in block.rows] == ["Learned, from YaRN"]
