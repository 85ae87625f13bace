"""The bench for GPUs runs at toy size: each part measures what was made faster beside what it replaced."""

import csv

import pytest

from tools.bench import evaluation
from tools.bench.kit import COLUMNS, Bench


@pytest.fixture
def ran(tmp_path):
    """ran(part) -> {(what, engine): [values]} of a part at toy size."""

    def run(part):
        file = tmp_path / "rows.csv"
        part(Bench(toy=True, output=file))
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        assert all(tuple(row) == COLUMNS and row["device"] and "torch=" in row["versions"] for row in rows)
        values = {}
        for row in rows:
            values.setdefault((row["what"], row["engine"]), []).append(row["value"])
        return values

    return run


@pytest.mark.parametrize(
    ("part", "engines"),
    [
        (evaluation.passkeys, {"each read once, no answer", "prefixes shared", "whole, in groups of one length"}),
        (evaluation.attention, {"transformers", "ours"}),
    ],
)
def test_what_was_made_faster_is_measured_beside_what_it_replaced(ran, part, engines):
    values = ran(part)
    assert {engine for _, engine in values} == engines and len({what for what, _ in values}) <= 2
    assert all(float(several[0]) > 0 for several in values.values())
