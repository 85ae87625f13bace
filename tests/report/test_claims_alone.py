"""The verdicts on DPRoPE alone, at several lengths, values of an option and phases; each comes out every way."""

import pytest

from analysis.claims.finding import NONE, overall
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.report.conftest import score
from tests.report.found import decided, findings, means, only

# Within and beyond L


@pytest.mark.parametrize(
    ("original", "near", "ours", "verdicts"),
    [
        (0, 60, (58, 57), (REPRODUCED, REPRODUCED)),
        (58, 60, (59, 57), (UNDECIDED, UNDECIDED)),  # the original keeps its score
        (30, 60, (25, 35), (REPRODUCED, UNDECIDED)),  # ours collapses as well
        (0, 8, (0.5, 0.4), (REPRODUCED, UNDECIDED)),  # ours has little to lose, and loses it
        (30, 60, (1, 1), (REPRODUCED, CONTRADICTED)),  # ours loses more
    ],
)
def test_what_is_lost_beyond_the_training_length(folder, original, near, ours, verdicts):
    def run(method, far, near=60, **more):
        folder.ruler(method, {8192: near, 16384: far}, 2, **more)

    run("original", original)
    run("dprope", 0)  # without training: there are fine-tuned ones
    run("dprope", 0, options={"n_hat": 40}, training={"seed": 0})  # another selection
    for seed, far in enumerate(ours):
        run("dprope", far, near, training={"seed": seed})
    finding = only("Without extension", folder)
    assert tuple(fact.verdict for fact in finding.facts) == verdicts
    kept = 100 * sum(ours) / 2 / near - 100 * original / 60
    assert decided(finding)[1][0] == pytest.approx(kept) and finding.verdict == overall(verdicts)


def test_perplexity_collapses_upward(folder):
    for method, far in (("original", 40), ("dprope", 20)):
        scores = [{"length": n, "token": score(mean, 1)} for n, mean in ((8192, 20), (16384, far))]
        folder.save("perplexity", method=method, scores=scores)
    finding = only("Without extension", folder)
    assert decided(finding) == [(50, REPRODUCED), (50, REPRODUCED)]


def keys(folder, found, asked, **more):
    lengths = {8192: 1.0, 16384: found, 32768: 0.0}  # the last is beyond L'
    rows = [{"length": length, "mean": mean, "low": 0, "high": 1, "n": asked} for length, mean in lengths.items()]
    folder.save("passkey", method="dprope", scores={"by_length": rows}, **more)


@pytest.mark.parametrize(
    ("found", "asked", "verdict"),
    [(1.0, 1000, REPRODUCED), (1.0, 10, UNDECIDED), (29 / 30, 30, UNDECIDED), (0.5, 10, CONTRADICTED)],
)
def test_all_passkeys_within_the_extended_length(folder, found, asked, verdict):
    keys(folder, found, asked)
    keys(folder, 0.0, asked, options={"n_hat": 2})  # an ablation's
    finding = only("All passkeys", folder)
    assert finding.verdict == verdict and means(finding.facts[0]) == [round(50 * (1 + found), 6)]


# Ablations


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


# Time


@pytest.mark.parametrize(
    ("relative", "width", "verdict"),
    [(1.001, 0.002, REPRODUCED), (0.9, 0.01, REPRODUCED), (1.001, 0.02, UNDECIDED), (1.03, 0.01, CONTRADICTED)],
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
