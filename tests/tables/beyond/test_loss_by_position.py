"""Loss by position: the records' numbers, the best marked, differences to the rival of the same state."""

from tables.beyond import loss_by_position


def test_key_tokens_are_averaged_over_texts_that_have_some(recorder):
    """Two excerpts of one text count as one; beside the row of the same texts, and only there."""
    losses = {"One": [1, 1, 4, 7], "One (1)": [1, 1, 4, 7], "Two": [1, 1, 1, 1]}
    sums = {"One": [6.0, 3], "One (1)": [2.0, 1], "Two": [1.0, 1]}
    spans = [{"start": a, "end": b} for a, b in ((0, 8192), (8192, 12288), (12288, 16384))]
    on = {"data": {"One": 1, "Two": 2}, "length": 16384}
    for method in ("yarn", "pi"):
        recorder.add("loss_by_position", method, **on, ranges=spans, block=4096, blocks=losses)
    found = {name: {"beyond": {"key": key}} for name, key in sums.items()}
    recorder.add("long_perplexity", "yarn", **on, texts=found)
    recorder.add("long_perplexity", "pi", **on | {"length": 8192}, texts=found)
    (block,) = loss_by_position.build(recorder.results()).blocks
    assert block.header[-1] == "key tokens beyond L"
    assert [row[-1].text for row in block.rows] == ["–", "1.500"]  # 8/4 and 1/1
    recorder.records["long_perplexity/002_yarn.json"]["texts"]["Two"]["beyond"]["key"] = [0.0, 0]
    (block,) = loss_by_position.build(recorder.results()).blocks
    assert block.rows[1][-1].text == "2.000"
