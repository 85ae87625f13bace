"""The page of the claims has every statement on each model."""

import re
from collections import Counter

import pytest

from analysis.claims import CLAIMS
from analysis.claims.statement import NONE
from experiments.kit.records import RESULTS
from report import claims_page, pages
from tests.analysis.claims.conftest import folder  # noqa: F401


@pytest.fixture(scope="module")
def tested():
    return claims_page.tested(RESULTS)


@pytest.fixture(scope="module")
def page(tested):
    return pages.claims(tested)


def test_each_claim_has_a_row_with_its_verdict_on_each_model(page, tested):
    rows = re.findall(r"^\| \[\d+\. .*", page, re.MULTILINE)
    shown = Counter(verdict for row in rows for verdict in re.findall(r"\*\*(.*?)\*\*", row))
    counted = dict(re.findall(r"^\| \*\*(.*?)\*\* \| .* \| (\d+) \|$", page, re.MULTILINE))
    assert shown == {verdict: int(count) for verdict, count in counted.items()} and len(rows) == len(CLAIMS)
    assert shown.total() == sum(map(len, tested)) and NONE not in shown
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)


def test_every_number_is_on_the_page_once(page, tested):
    statements = [each for claim in tested for one in claim for each in one.statements]
    lines = [line for line in page.splitlines() if "| s = " in line]
    assert len(lines) == len(statements)
    assert all(f"| {each.value} |" in line and each.verdict in line for each, line in zip(statements, lines))


def test_without_records_no_claim_is_tested(folder):
    folder.scale("mine")
    tested = claims_page.tested(folder.path)
    assert [one.claim.key for claim in tested for one in claim if one.model] == ["least_disturbance"]
    assert pages.claims(tested).count("No record") == len(CLAIMS) - 1
