"""The page of the claims has the verdict on each model, and says where there is no record."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from analysis.claims import CLAIMS
from report import claims_page, pages
from tests.analysis.recorder import Recorder, score


def test_without_records_no_claim_is_tested(recorder, tmp_path):
    tested = claims_page.tested(recorder.results().folder)
    on_models = [one.claim.key for claim in tested for one in claim if one.measured]
    assert on_models == ["least_disturbance"]
    assert pages.claims(tested, tmp_path / "claims.md").count("It takes") == len(CLAIMS) - 1


def test_on_records_of_ones_own_every_link_leads_somewhere(recorder):
    folder = recorder.results("my model (v2)").folder
    written = pages.pages(folder)
    links = re.findall(r"\]\(([^)#]+)", written[folder / "claims.md"])
    places = [Path(os.path.normpath(folder / unquote(link))) for link in links]
    assert folder / "my model (v2)/README.md" in places
    assert [each for each in places if not (each.exists() or each in written)] == []


@pytest.mark.parametrize("run", ["whole", "a-quick"])
def test_a_quick_run_has_no_verdict(tmp_path, run):
    folder = Recorder(tmp_path / run).results().folder
    assert (folder / "claims.md" in pages.pages(folder)) == (run == "whole")


def test_a_claim_that_was_tested_in_part_is_not_decided_and_tells_a_number(recorder):
    """DPRoPE is ahead of YaRN; whether it keeps the original's scores is beyond the samples."""
    for method, mean in (("original", 50.1), ("yarn", 40.0), ("dprope", 50.0)):
        options = {"n_hat": 28} if method == "dprope" else {}
        recorder.add("open_llm", method, {"tasks": {"average": score(mean)}}, options=options)
    tested = claims_page.tested(recorder.results().folder)
    (claim,) = (one for of in tested for one in of if one.claim.key == "open_llm")
    assert [each.verdict for each in claim.statements] == ["holds here", "not tested"]
    assert claim.verdict == "not decided here"
    assert claims_page.telling(claim).what == "DPRoPE (n̂ = 28) minus YaRN"
    assert "open_llm" in claims_page.table(tested)
