"""Keys in books, beside losses of the same settings."""

import pytest

from tables.beyond.needles import needles
from tests.analysis.claims.conftest import Claimed

TITLES = ("YaRN", "DPRoPE (t = 0)")


@pytest.mark.parametrize("rounds", [("first",), ("first", "second"), ("second", "first")])
def test_the_loss_beside_keys_is_of_the_same_fine_tunes(tmp_path, rounds):
    """There are keys of the second round alone; the first has more losses."""
    recorder = Claimed(tmp_path)
    for number, name in enumerate(rounds):
        off = {"first": 0.5, "second": 0.25}[name]
        methods = (
            {"yarn": 0.0, "dprope": off, "pi": 1.0}
            if name == "first"
            else {"yarn": 0, "dprope": off}
        )
        for method, more in methods.items():
            training = {"settings": f"{method} {name}"} | (
                {"per_book": 1} if name == "second" else {}
            )
            books = [more + 0.1 * i for i in range(8)]
            recorder.losses(
                method, books, books, seed=0, training=training, file=f"{number}_{method}"
            )
    for method in ("yarn", "dprope"):
        training = {"settings": f"{method} second", "per_book": 1}
        recorder.keys(method, [1.0] * 8, [2.0] * 8, seed=0, training=training, dtype="float32")
    (block,) = needles(recorder.results()).blocks
    beside = {row[0].text: row[-1].text.split()[0] for row in block.rows}
    known = "second" in rounds
    assert beside == {TITLES[0]: "–", TITLES[1]: "+0.250" if known else "–"}
