"""A server whose records stand beside those of this process was compared with it, prompt by prompt."""

import csv

import pytest

from experiments.kit.records import RESULTS
from experiments.kit.serving import AS_HERE


@pytest.mark.parametrize("server", sorted({server for server, _ in AS_HERE}))
def test_every_answer_is_the_same(server):
    with open(RESULTS / "servers.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["server"] == server]
    assert sum(int(row["prompts"]) for row in rows if row["benchmark"] in ("passkey", "ruler")) >= 20
    assert {row["benchmark"] for row in rows} >= {"truthfulqa", "hellaswag", "mmlu", "arc_challenge"}
    assert all(row["same"] == row["prompts"] for row in rows)
