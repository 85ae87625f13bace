"""The verdict on time comes out every way that it can."""

import pytest

from analysis.claims.finding import CERTAIN
from analysis.hypothesis_tests import CONTRADICTED
from tests.analysis.claims.made import means, only


@pytest.mark.parametrize(
    ("relative", "width", "verdict"),
    [(1.001, 0.002, CERTAIN), (0.9, 0.01, CERTAIN), (1.001, 0.02, CERTAIN), (1.03, 0.01, CONTRADICTED)],
)
def test_time_may_cost_what_the_paper_cannot_print(folder, relative, width, verdict):
    rows = [
        {"method": method, "options": {}, "phase": "train", "rounds": 100, "relative_to_pi": value}
        | {"low": value - width, "high": value + width}
        for method, value in (("pi", 1.0), ("clex", 3.0), ("dprope", relative))
    ]
    folder.save("time_cost", scores=rows)
    finding = only("No cost over PI", folder)
    assert finding.verdict == verdict and means(finding.facts[0]) == [relative]
