"""The benches of evaluation on a GPU, at toy size: each measures what it says."""

import csv

import pytest

from tools.bench.gpu import evaluation
from tools.bench.gpu.kit import COLUMNS, Bench


@pytest.mark.parametrize("part", [evaluation.passkeys, evaluation.attention, evaluation.serve])
def test_a_part_measures_both_ways(part, tmp_path):
    file = tmp_path / "rows.csv"
    part(Bench(toy=True, output=file))
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert all(tuple(row) == COLUMNS and row["device"] and "torch=" in row["versions"] for row in rows)
    assert all(float(row["value"]) > 0 for row in rows if not row["unit"].startswith("GB"))
    assert len({(row["what"], row["engine"]) for row in rows}) >= 2
