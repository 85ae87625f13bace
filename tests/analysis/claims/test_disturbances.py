"""The verdicts about the disturbance; each comes out every way that it can."""

import pytest

from analysis.claims.finding import CERTAIN, EXACT
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
    ("model", "yarn", "verdict"),
    [("llama2-7b", 3.0, EXACT), ("smollm2", 3.0, REPRODUCED), ("smollm2", 0.5, CONTRADICTED)],
)
def test_the_least_disturbance_is_of_the_methods_that_the_paper_compares(folder, model, yarn, verdict):
    disturbance(folder, model, "float64", dprope=1.0, pi=2.0, yarn=yarn, ntk=0.1)
    finding = only("The method has the least", folder)
    assert finding.verdict == verdict
    assert [(means(fact), fact.verdict) for fact in finding.facts] == [
        ([1000, 2000], CERTAIN),  # the lesser of each pair's two, one of which is PI's
        ([1000, 1000 * yarn], verdict),
    ]


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [((2.0, 3.0, 4.0), REPRODUCED), ((4.0, 3.0, 2.0), CONTRADICTED), ((2.0, 3.0, 3.0), UNDECIDED)],
)
def test_of_two_methods_that_with_less_disturbance_has_less_loss(folder, losses, verdict):
    for place, (method, loss) in enumerate(zip(("dprope", "pi", "yarn"), losses)):
        texts = {f"Book {i}": loss + 0.01 * place * (-1) ** i for i in range(8)}
        folder.save("perplexity", method=method, **on_texts({16384: texts}))
    folder.save("perplexity", method="ntk", **on_texts({16384: dict.fromkeys(texts, 9.0)}))  # not of the paper
    disturbance(folder, "smollm2", "float64", dprope=1.0, pi=2.0, yarn=3.0, ntk=0.1)
    finding = only("Less disturbance", folder)
    assert finding.verdict == verdict and finding.family == ((3, "pairs"),)
    names = ["DPRoPE (t = 0) minus PI", "DPRoPE (t = 0) minus YaRN", "PI minus YaRN"]
    assert [fact.quantities[-1].name for fact in finding.facts] == names
