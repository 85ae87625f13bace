"""The main claims show every verdict of a claim once, with the numbers of the records."""

import json

import numpy as np
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


def test_a_line_has_the_difference_of_the_records_and_the_papers(lines):
    line, *_ = of(lines, "DPRoPE has the least perplexity at L'")
    folder = RESULTS / "smollm2" / "perplexity"

    def loss(name):
        """The mean over books of a book's loss."""
        (file,) = folder.glob(f"{name}*seed=0*.json")
        by_window = json.loads(file.read_text())["by_window"]
        books = {key.rsplit("/", 2)[0] for key in by_window}
        of = [[window for key, window in by_window.items() if key.startswith(f"{book}/16384/")] for book in books]
        return np.mean([np.sum(windows, axis=0)[0] / np.sum(windows, axis=0)[1] for windows in of])

    assert f"{loss('dprope_n-hat=28_s=2') - loss('yarn_s=2'):+.3f} (texts: " in line.ours
    assert line.paper.startswith("−0.0") and line.models[0][0] == "smollm2"


def test_without_records_nothing_is_claimed(tmp_path):
    assert {line.verdict for line in main_claims.lines(tmp_path)} == {NONE}
