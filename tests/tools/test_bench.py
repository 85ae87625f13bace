"""The benches: ours and plain code agree; GPU parts run at toy size and say what no machine changes."""

import csv

import pytest

from tools.bench import __main__ as bench
from tools.bench.gpu import evaluation, training
from tools.bench.gpu.kit import COLUMNS, Bench


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


@pytest.mark.parametrize("name", ["selection", "training"])
def test_ours_and_plain_code_agree(name, monkeypatch):
    length = 64
    monkeypatch.setitem(bench.SMALL, "vocab_size", 300)
    monkeypatch.setattr(bench, "STEPS", 3)
    ours, plain = (bench.run(name, way, length)[1] for way in ("ours", "plain"))
    if name == "training":
        assert ours == pytest.approx(plain, rel=1e-5) and len(ours) > 2
    else:
        assert ours == plain and sum(ours[0]) == length


@pytest.mark.parametrize(
    ("part", "engines"),
    [
        (training.steps, {"recomputed", "kept"}),
        (evaluation.passkeys, {"each read once, no answer", "prefixes shared", "whole, in groups of one length"}),
        (evaluation.attention, {"transformers", "ours"}),
    ],
)
def test_what_was_made_faster_is_measured_beside_what_it_replaced(ran, part, engines):
    values = ran(part)
    assert {engine for _, engine in values} == engines and len({what for what, _ in values}) <= 2
    assert all(float(several[0]) > 0 for several in values.values())


def test_serve(ran):
    values = ran(evaluation.serve)
    assert len(values) == 4 and all(float(value) > 0 for several in values.values() for value in several)
