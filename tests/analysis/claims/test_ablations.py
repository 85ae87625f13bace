"""The verdicts on the values of n̂ and b; each comes out every way that it can."""

import pytest

from analysis.claims.finding import NONE
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.analysis.claims.made import decided, findings, only, score


@pytest.mark.parametrize(
    ("least", "width", "verdict"),
    [(50.0, 0.01, REPRODUCED), (49.9, 0.01, REPRODUCED), (49, 1, UNDECIDED), (30, 1, CONTRADICTED)],
)
def test_n_hat_has_little_effect_within_the_papers_spread(folder, least, width, verdict):
    for n_hat, mean in ((48, 50), (40, 50.1), (28, least), (20, 0), (60, 99)):  # the paper's are 28 to 48 of 64
        folder.save("open_llm", method="dprope", options={"n_hat": n_hat}, scores={"average": score(mean, width)})
    finding = only("n̂ has little effect", folder)
    assert finding.verdict == verdict and finding.margin.score.mean == pytest.approx(61.055 - 60.7575)
    assert {fact.quantities[0].name: mean for fact, (mean, _) in zip(finding.facts, decided(finding))} == {
        "n̂ = 28": pytest.approx(least - 50),
        "n̂ = 40": pytest.approx(0.1),
    }
    assert findings("b does not", folder)[0].verdict == NONE


def test_an_ablation_of_which_one_value_was_fine_tuned_is_read_without_training(folder):
    for n_hat in (48, 28):
        folder.open_llm({"n_hat": n_hat}, 50)
    folder.open_llm({"n_hat": 28}, 10, training={"seed": 0})
    finding = only("n̂ has little effect", folder)
    assert finding.verdict == UNDECIDED and decided(finding)[0][0] == 0


def test_the_number_of_intervals_is_compared_with_the_papers(folder):
    for options, mean in (({"intervals": 90}, 50), ({}, 51), ({"intervals": 720}, 60)):
        folder.open_llm(options, mean)
    finding = only("b does not", folder)
    assert finding.verdict == CONTRADICTED and decided(finding) == [(-1, UNDECIDED), (9, CONTRADICTED)]


def longbench(folder, options, mean, width):
    scores = {"buckets": {}, "averages": {"Avg.": score(mean, width)}, "tasks": {}}
    folder.save("longbench_e", method="dprope", options=options, scores=scores)


@pytest.mark.parametrize(
    ("at_720", "at_90", "width", "verdict"),
    [
        (30, 50, 0.01, REPRODUCED),
        (30, 50, 1, UNDECIDED),
        (50, 50, 0.01, UNDECIDED),
        (55, 50, 0.01, CONTRADICTED),
        (30, 40, 0.01, CONTRADICTED),
    ],
)
def test_longbench_may_fall_at_720_alone(folder, at_720, at_90, width, verdict):
    for options, mean in (({"intervals": 90}, at_90), ({}, 50), ({"intervals": 720}, at_720)):
        longbench(folder, options, mean, width)
    assert only("LongBench-E is the same", folder).verdict == verdict


@pytest.mark.parametrize(("least", "verdict"), [(45, REPRODUCED), (50, UNDECIDED), (55, CONTRADICTED)])
def test_longbench_falls_with_too_few_dimensions(folder, least, verdict):
    for n_hat, mean in ((48, 50), (40, 20), (28, least)):
        longbench(folder, {"n_hat": n_hat}, mean, 1)
    finding = only("With too few", folder)
    assert finding.verdict == verdict and decided(finding) == [(least - 50, verdict)]
    assert finding.facts[0].decision.effect == pytest.approx(30.713 - 31.08, abs=1e-3)
