"""The main claims have a line for every model of a claim; test_readme_numbers.py computes their numbers again."""

import pytest

from analysis.claims import claims
from analysis.claims.finding import NONE
from experiments.kit.records import RESULTS
from report import main_claims


@pytest.fixture(scope="module")
def lines():
    return list(main_claims.lines(RESULTS))


def of(lines, claim):
    start = next(place for place, line in enumerate(lines) if line.claim == claim)
    rest = [line.claim for line in lines[start + 1 :]]
    return lines[start : start + 1 + next((i for i, other in enumerate(rest) if other), len(rest))]


def test_every_model_of_a_claim_is_under_its_verdict(lines):
    for claim in claims():
        if claim.headline:
            found = {line.name for line in of(lines, claim.headline)}
            assert found == {finding.model.name if finding.model else "" for finding in claim.findings(RESULTS)}


def test_without_records_nothing_is_claimed(tmp_path):
    assert {line.verdict for line in main_claims.lines(tmp_path)} == {NONE}
