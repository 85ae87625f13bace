"""Loss by position: differences to the rival of the same state, paired by text."""

from tables.beyond.loss_by_position import loss_by_position


def test_the_title_says_of_all_rows_how_they_were_fine_tuned(recorder):
    for method, steps in (("pi", 64), ("yarn", 1000)):
        training = {"steps": steps, "length": 16384}
        recorder.losses(method, {"A Book": [1.0, 2.0]}, seed=0, training=training)
    (block,) = loss_by_position(recorder.results()).blocks
    read = "steps on sequences of 16,384 tokens"
    assert f"(64 {read} or 1000 {read})" in block.title
