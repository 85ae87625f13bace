"""The verdicts on DPRoPE against the paper's rivals; each comes out every way that it can."""

import math

import pytest

from analysis.claims.finding import NONE
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.analysis.claims.made import PAPERS, by_name, means, only, score
from tests.analysis.made import on_texts


def options(method):
    return PAPERS if method == "dprope" else {}


@pytest.mark.parametrize(
    ("ours", "width", "verdict"),
    [(60, 1, REPRODUCED), (52, 5, UNDECIDED), (40, 1, CONTRADICTED), (47, 1, CONTRADICTED)],
)
def test_every_rival_of_the_paper_is_compared(folder, ours, width, verdict):
    for method, mean in (("pi", 45), ("yarn", 50), ("dprope", ours), ("original", 99), ("ntk", 99)):
        folder.ruler(method, {1024: mean, 2048: mean}, width, options=options(method))
    finding = only("Best on RULER", folder)
    assert finding.verdict == verdict and finding.family == ((2, "rivals"),)
    assert [means(fact) for fact in finding.facts] == [[ours, 45, ours - 45], [ours, 50, ours - 50]]


def test_a_rival_that_is_ahead_by_less_than_the_correction_is_not(folder):
    # √2 apart per width: one comparison alone has |z| = 2.1, of three the least p has to be below 0.05 / 3.
    for method, mean in (("pi", 50), ("yarn", 50), ("clex", 50 + 2.1 * 2**0.5), ("dprope", 50)):
        folder.ruler(method, {1024: mean, 2048: mean}, 1.959964, options=options(method))
    finding = only("Best on RULER", folder)
    assert finding.verdict == UNDECIDED and finding.facts[-1].decision.p == pytest.approx(3 * 0.0357, abs=2e-3)
    interval = finding.facts[-1].quantities[-1].score
    assert interval.low < 0 < interval.high


def test_dprope_is_the_papers_setting_whatever_scores_more(folder):
    for given, mean in (({}, 70), (PAPERS, 60), ({"n_hat": 28}, 80)):
        folder.ruler("dprope", {8192: mean, 16384: mean}, options=given)
    folder.ruler("dprope-significant", {8192: 99, 16384: 99})
    folder.ruler("yarn", {8192: 50, 16384: 50})
    folder.ruler("yarn", {8192: 0, 16384: 0}, options={"attention_factor": 1.0})
    (fact,) = only("Best on RULER", folder).facts
    assert means(fact) == [60, 50, 10]


@pytest.mark.parametrize(("rival", "verdict"), [(5, CONTRADICTED), (20, REPRODUCED)])
def test_less_perplexity_is_less_loss(folder, rival, verdict):
    for method, mean in (("yarn", rival), ("dprope", 10)):
        losses = {f"Book {i}": math.log(mean) + 0.01 * (i + i**2 * (mean == 10)) for i in range(8)}
        folder.save(
            "perplexity", method=method, options=options(method), **on_texts(dict.fromkeys((8192, 16384), losses))
        )
    finding = only("Least perplexity", folder)
    assert finding.verdict == verdict
    # ln(7.12 / 7.39) and ln(5.91 / 6.06)
    assert finding.facts[0].decision.effect == pytest.approx(-0.0311, abs=1e-3)


def test_an_undecided_comparison_says_whether_the_papers_effect_is_as_possible(folder):
    folder.scale("tiny", like="tiny")
    for method, mean in (("yarn", 50), ("dprope", 51)):
        scores = {"buckets": {}, "averages": {"Avg.": score(mean, 3) | {"n": 100}}, "tasks": {}}
        folder.save("longbench_e", "tiny", method=method, options=options(method), scores=scores)
    finding = only("Best on LongBench-E", folder)
    (fact,) = finding.facts
    assert finding.verdict == UNDECIDED
    assert fact.decision.effect == pytest.approx((27.82 - 27.31 + 31.157 - 30.497) / 2, abs=0.01)


def test_fine_tuned_records_come_before_untrained_ones_and_are_paired_by_seed(folder):
    folder.ruler("pi", {1024: 0, 2048: 0})
    folder.ruler("dprope", {1024: 99, 2048: 99}, options=PAPERS)
    for seed, base in enumerate((10, 30, 50)):  # seeds differ much, the methods within a seed little
        folder.ruler("pi", {1024: base, 2048: base}, training={"seed": seed})
        ours = base + 2 + seed / 10
        folder.ruler("dprope", {1024: ours, 2048: ours}, options=PAPERS, training={"seed": seed})
    finding = only("Best on RULER", folder)
    gap = by_name(finding.facts[0])["difference"]
    assert finding.about.startswith("fine-tuned") and finding.verdict == REPRODUCED
    # Student's: 4.303 · 0.1 / √3
    assert (gap.mean, gap.low, gap.high) == pytest.approx((2.1, 1.852, 2.348), abs=1e-3)


def test_three_texts_decide_nothing_and_each_is_told(folder):
    for method, more in (("yarn", 0.0), ("dprope", 0.1)):
        losses = {f"Book {i}": 3 + i + more * (1 + i) for i in range(3)}
        folder.save(
            "perplexity", method=method, options=options(method), **on_texts(dict.fromkeys((8192, 16384), losses))
        )
    finding = only("Least perplexity", folder)
    gap = by_name(finding.facts[0])["difference"]
    assert finding.verdict == UNDECIDED and gap.low is None and gap.texts == pytest.approx((0.1, 0.2, 0.3))


def test_without_the_papers_setting_nothing_is_judged(folder):
    for method in ("yarn", "dprope"):
        folder.ruler(method, {8192: 50, 16384: 50})
    assert only("Best on RULER", folder).verdict == NONE
