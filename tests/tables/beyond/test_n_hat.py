"""The untrained ablation of n̂, by every evaluation."""

from tables.beyond import n_hat


def test_n_hat_by_every_evaluation(made):
    """Three n̂, one of them measured under another name."""
    ranges = [{"start": 0}, {"start": 8192}]

    def extension(n_hat, *losses, **more):
        blocks = {"block": 4096, "blocks": {"A": list(losses)}, "ranges": ranges}
        made.add("loss_by_position", "dprope", options={"n_hat": n_hat}, **blocks, **more)

    extension(24, 9, 9, 3, 5)
    extension(8, 9, 9, 2, 2)
    extension(36, 9, 9, 5, 5, same_selection_as="another")
    for count, found in ((24, (1, 0.5)), (8, (0.5, 0))):
        rows = [{"length": 4096 * i, "n": 2, "mean": mean} | {"low": 0, "high": 1} for i, mean in enumerate(found, 1)]
        made.add("passkey", "dprope", {"by_length": rows}, options={"n_hat": count})
    for count in (24, 8):  # of another factor
        made.add("ruler", "dprope", {}, options={"n_hat": count}, factor=4)
    (block,) = n_hat.build(made.results()).blocks
    assert "s = 2" in block.title and block.header == ("n̂", "Loss", "Passkeys")
    assert [[cell.text for cell in row] for row in block.rows] == [
        ["36", "5.000", "no record"],
        ["24", "4.000", "75"],  # three of four
        ["8", "2.000", "25"],
    ]
    assert [row[1].bold for row in block.rows] == [False, False, True]
    assert [row[2].bold for row in block.rows] == [False, True, False]
