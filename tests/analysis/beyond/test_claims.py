"""The central claim over selections of pairs, by both conventions of the disturbance."""

import pytest

from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.analysis.claims.conftest import folder  # noqa: F401  (a fixture)
from tests.analysis.claims.made import by_name, only, score


@pytest.mark.parametrize(("mean", "verdict"), [(0.5, REPRODUCED), (-0.5, CONTRADICTED), (0.1, UNDECIDED)])
def test_the_central_claim_over_selections_wants_both_conventions(folder, mean, verdict):
    rank = {"mean": mean, "low": mean - 0.3, "high": mean + 0.3, "n": 40}
    rows = [{"interpolated_pairs": [1] * count, "beyond": score(count)} for count in (3, 2)]
    folder.save("selections", scores=rows, spearman={"released": rank, "equation": rank})
    finding = only("The same, over dozens", folder)
    assert finding.verdict == verdict and any("4 dimensions" in name for name in by_name(finding.facts[0]))
    assert finding.family == ((2, "conventions"),)


def test_one_convention_that_is_not_decided_leaves_the_claim_undecided(folder):
    spearman = {name: {"mean": mean, "low": mean - 0.3, "high": mean + 0.3, "n": 40}
                for name, mean in (("released", 0.6), ("equation", 0.1))}  # fmt: skip
    folder.save("selections", scores=[{"interpolated_pairs": [1], "beyond": score(1)}], spearman=spearman)
    finding = only("The same, over dozens", folder)
    assert [fact.verdict for fact in finding.facts] == [REPRODUCED, UNDECIDED] and finding.verdict == UNDECIDED
