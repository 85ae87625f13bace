"""The bench for GPUs runs at toy size, and measures what was made faster beside what it replaced."""

import csv

from tools.bench.__main__ import COLUMNS


def test_a_part_adds_a_row_for_each_engine(call, tmp_path):
    status, _, err = call("tools.bench.__main__", "passkeys", "--toy", "--output", tmp_path / "rows.csv")
    assert status == 0, err
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["engine"] for row in rows} == {
        "each read once, no answer", "prefixes shared", "whole, in groups of one length"
    }  # fmt: skip
    assert all(tuple(row) == COLUMNS and float(row["value"]) > 0 and "torch=" in row["versions"] for row in rows)
