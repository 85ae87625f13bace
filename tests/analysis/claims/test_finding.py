"""One verdict for several statements, and none without a record."""

from analysis.claims import claims
from analysis.claims.finding import EXACT, NONE, overall
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.analysis.claims.made import findings


def test_one_statement_contradicts_a_claim_and_all_reproduce_it():
    assert overall([REPRODUCED, CONTRADICTED, UNDECIDED]) == CONTRADICTED
    assert overall([REPRODUCED, UNDECIDED]) == UNDECIDED
    assert overall([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert overall([EXACT, EXACT]) == EXACT


def test_no_verdict_without_a_record(folder):
    folder.copy("llama2-7b", "disturbance", "angle_distribution")
    for claim in claims():
        for finding in claim.findings(folder.path):
            assert (finding.verdict == NONE) == (finding.model is None) == (not finding.facts)
    assert findings("The disturbance of", folder)[0].verdict == EXACT
