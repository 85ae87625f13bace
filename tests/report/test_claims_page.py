"""The page of the claims has each claim on each model, with the numbers of the findings and sections that there are."""

import re
from collections import Counter

import pytest

from analysis.claims import claims
from analysis.claims.finding import NONE
from experiments.kit.records import RESULTS
from report import claims_page, pages


@pytest.fixture(scope="module")
def page():
    return (RESULTS / "claims.md").read_text()


def test_each_claim_has_a_row_for_each_model_with_its_verdict(page):
    found = Counter(re.search(r"\*\*(.*?)\*\*", line)[1] for line in re.findall(r"^\| \[\d+\. .*", page, re.MULTILINE))
    counted = re.findall(r"^\| \*\*(.*?)\*\* \| .* \| (\d+) \|$", page, re.MULTILINE)
    assert found == {verdict: int(count) for verdict, count in counted}
    expected = Counter()
    for claim in claims():
        findings = claim.findings(RESULTS)
        expected[claim.text] = len({finding.model.name for finding in findings if finding.model}) or 1
    assert Counter(re.findall(r"^\| \[\d+\. (.*?)\]\(#", page, re.MULTILINE)) == expected


def test_every_number_that_decides_is_on_the_page(page):
    for claim in claims():
        for finding in claim.findings(RESULTS):
            numbers = [claims_page.value(quantity) for fact in finding.facts for quantity in fact.quantities]
            assert all(number in page for number in numbers)


def test_a_claim_is_shown_in_sections_of_a_models_page():
    text = "\n".join(file.read_text() for file in RESULTS.glob("*/**/README.md"))
    headings = set(re.findall("^## (.+)$", text, re.MULTILINE))
    for claim in claims():
        assert claim.shown and set(claim.shown) <= headings


def test_without_records_no_claim_is_tested(folder):
    folder.scale("mine")
    tested = claims_page.tested(folder.path)
    assert all(one.model is None or one.claim.shown == ("Disturbance",) for models in tested for one in models)
    text = pages.claims(folder.path, {folder.path / "mine" / "README.md": ""})
    assert text.count(f"**{NONE}**") > len(claims()) - 3 and "](mine/" not in text
