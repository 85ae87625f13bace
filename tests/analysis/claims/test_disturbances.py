"""The verdicts about the disturbance; each comes out every way that it can."""

import pytest

from analysis.claims.finding import EXACT
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.analysis.claims.made import findings, means, only
from tests.analysis.made import on_texts


def disturbance(folder, model, precision="float32", **averages):
    for method, average in averages.items():
        counted = {"precision": precision, "convention": "released", "average": average}
        folder.save("disturbance", model, method=method, scores=[counted])


@pytest.mark.parametrize(("average", "verdict"), [(0.02408, EXACT), (0.0245, CONTRADICTED)])
def test_a_published_number_is_met_within_half_a_per_cent(folder, average, verdict):
    disturbance(folder, "llama2-7b", pi=average)
    assert only("The disturbance of", folder).verdict == verdict
    disturbance(folder, "smollm2", pi=average)  # of another geometry
    assert [finding.model.name for finding in findings("The disturbance of", folder)] == ["llama2-7b"]


@pytest.mark.parametrize(
    ("model", "ours", "verdict"),
    [("llama2-7b", 1.0, EXACT), ("smollm2", 1.0, REPRODUCED), ("smollm2", 2.5, CONTRADICTED)],
)
def test_the_least_disturbance_is_of_the_methods_that_the_paper_compares(folder, model, ours, verdict):
    disturbance(folder, model, "float64", dprope=ours, pi=2.0, yarn=3.0, ntk=0.5)
    finding = only("The method has the least", folder)
    assert finding.verdict == verdict and means(finding.facts[0]) == [1000 * ours, 2000]


@pytest.mark.parametrize(
    ("order", "verdict"),
    [((0, 1, 2, 3, 4, 5, 6), REPRODUCED), ((6, 5, 4, 3, 2, 1, 0), CONTRADICTED), ((3, 0, 5, 1, 6, 2, 4), UNDECIDED)],
)
def test_the_order_of_disturbance_and_perplexity(folder, order, verdict):
    for place in range(7):
        losses = {16384: {"A Book": 3 + order.index(place)}}
        folder.save("perplexity", method=f"m{place}", **on_texts(losses))
    disturbance(folder, "smollm2", "float64", **{f"m{place}": place + 1.0 for place in range(7)})
    finding = only("Less disturbance", folder)
    assert finding.verdict == verdict
    assert finding.facts[0].decision.effect == pytest.approx(0.5)  # the paper's three methods
