"""The untrained ablation of n̂, by every evaluation."""

import pytest

from analysis.beyond import n_hat


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
    factor, columns = n_hat.columns(made.results())
    found = {column.title: {n: score.mean for n, score in column.scores.items()} for column in columns}
    assert factor == 2 and found["Loss"] == {8: 2, 24: 4, 36: 5}
    assert found["Passkeys"] == {24: pytest.approx(75), 8: pytest.approx(25)}  # three and one of four
    assert not any(found[title] for title in ("Perplexity, 16k", "RULER, 16k", "Open LLM"))
