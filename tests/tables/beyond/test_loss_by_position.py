"""Loss by position: differences to the rival of the same state, paired by text."""

from tables.beyond.loss_by_position import loss_by_position


def test_parts_of_one_book_count_as_one(recorder):
    losses = {
        "One, part 1": [1, 1, 4, 7],
        "One, part 2": [3, 1, 4, 7],
        "Two": [1, 1, 1, 1],
    }
    for method, more in (("yarn", 0), ("pi", 0.5)):
        moved = {title: [loss + more for loss in each] for title, each in losses.items()}
        recorder.losses(method, moved, starts=(0, 8192, 12288))
    (block,) = loss_by_position(recorder.results()).blocks
    assert block.header[2:] == (
        "within L",
        "beyond L",
        "Δ within L",
        "Δ beyond L",
        "Δ beyond minus within",
    )
    pi, yarn = block.rows
    assert [cell.text for cell in yarn[2:]] == [
        "1.250",
        "3.250",
        "–",
        "–",
        "–",
    ]  # (1 + 1 + 3 + 1) / 4 and 1; 5.5 and 1
    assert [cell.text for cell in pi[2:]] == ["1.750", "3.750", "+0.500", "+0.500", "+0.000"]


def test_the_title_says_of_all_rows_how_they_were_fine_tuned(recorder):
    for method, steps in (("pi", 64), ("yarn", 1000)):
        training = {"steps": steps, "length": 16384}
        recorder.losses(method, {"A Book": [1.0, 2.0]}, seed=0, training=training)
    (block,) = loss_by_position(recorder.results()).blocks
    read = "steps on sequences of 16,384 tokens"
    assert f"(64 {read} or 1000 {read})" in block.title
