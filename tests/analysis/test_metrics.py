"""Passkeys are counted over seeds and lengths."""

from analysis.comparison import compared
from analysis.metrics import passkeys_by_length


def test_passkeys_of_all_seeds_are_counted_together(made):
    for seed, means in enumerate(((1.0, 0.5), (1.0, 0.0))):
        rows = [{"length": n, "n": 4} | {"mean": m, "low": 0, "high": 1} for n, m in zip((4096, 16384), means)]
        made.add("passkey", "pi", {"by_length": rows}, seed=seed)
    (row,) = compared(made.results(), "passkey", True).rows
    found = passkeys_by_length(row)
    assert {name: (keys.found, keys.asked) for name, keys in found.items()} == {
        "4k": (8, 8),
        "16k": (2, 8),
        "all": (10, 16),
    }
    assert found["16k"].share.mean == 25 and found["4k"].share.high == 100
