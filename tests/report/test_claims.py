"""The verdict of each claim is what its records say, and nothing but them."""

import pytest

from analysis.findings import EXACT, KIND, NONE, NOT
from report.claims import CLAIMS
from tests.report.conftest import score


def findings(start, folder):
    (claim,) = [claim for claim in CLAIMS if claim.text.startswith(start)]
    return claim.findings(folder.path)


def only(start, folder):
    (finding,) = findings(start, folder)
    return finding


def means(fact):
    return [round(quantity.score.mean, 6) for quantity in fact.quantities]


def by_name(fact):
    return {quantity.name: quantity.score for quantity in fact.quantities}


def test_no_verdict_without_a_record(folder):
    folder.copy("llama2-7b", "disturbance", "angle_distribution")
    for claim in CLAIMS:
        for finding in claim.findings(folder.path):
            assert (finding.verdict == NONE) == (finding.scale is None) == (not finding.facts)
    assert findings("The disturbance of", folder)[0].verdict == EXACT


@pytest.mark.parametrize(("average", "verdict"), [(0.02408, EXACT), (0.0245, NOT)])
def test_a_published_number_is_met_within_half_a_per_cent(folder, average, verdict):
    row = {"precision": "float32", "convention": "released", "method": "pi", "options": {}, "average": average}
    folder.save("disturbance", "llama2-7b", method="several", scores=[row])
    assert only("The disturbance of", folder).verdict == verdict
    folder.save("disturbance", "smollm2", method="several", scores=[row])  # of another geometry
    assert [finding.scale.name for finding in findings("The disturbance of", folder)] == ["llama2-7b"]


@pytest.mark.parametrize(("ours", "width", "verdict"), [(60, 1, KIND), (52, 5, NOT), (40, 1, NOT)])
def test_a_difference_within_the_noise_is_no_reproduction(folder, ours, width, verdict):
    for method, mean in (("pi", 45), ("yarn", 50), ("dprope", ours), ("original", 99)):
        folder.ruler(method, {1024: mean, 2048: mean}, width)
    finding = only("Best on RULER", folder)
    assert finding.verdict == verdict
    assert by_name(finding.facts[0])["YaRN"].mean == 50 and finding.facts[0].metric == "Avg."


def test_a_method_that_is_registered_is_a_rival(folder):
    for method, mean in (("yarn", 50), ("linear-ramp", 70), ("dprope", 60), ("dprope-significant", 65)):
        folder.ruler(method, {1024: mean, 2048: mean})
    finding = only("Best on RULER", folder)
    assert finding.verdict == NOT and means(finding.facts[0]) == [65, 70, -5]


def test_fine_tuned_records_come_before_untrained_ones_and_are_paired_by_seed(folder):
    folder.ruler("pi", {1024: 0, 2048: 0})
    folder.ruler("dprope", {1024: 99, 2048: 99})
    for seed, base in enumerate((10, 30, 50)):  # seeds differ much, the methods within a seed little
        folder.ruler("pi", {1024: base, 2048: base}, training={"seed": seed})
        ours = base + 2 + seed / 10
        folder.ruler("dprope", {1024: ours, 2048: ours}, training={"seed": seed})
    finding = only("Best on RULER", folder)
    gap = by_name(finding.facts[0])["difference"]
    assert finding.about == "fine-tuned" and finding.verdict == KIND
    # Student's: 4.303 · 0.1 / √3
    assert (gap.mean, gap.low, gap.high) == pytest.approx((2.1, 1.852, 2.348), abs=1e-3)


@pytest.mark.parametrize(
    ("original", "near", "ours", "verdict"),
    [
        (0, 60, (58, 57), KIND),
        (58, 60, (59, 57), NOT),  # the original keeps its score
        (30, 60, (25, 35), NOT),  # ours collapses as well
        (0, 8, (0.5, 0.4), NOT),  # ours has little to lose, and loses it
    ],
)
def test_what_is_lost_beyond_the_training_length(folder, original, near, ours, verdict):
    def run(method, far, near=60, **more):
        folder.ruler(method, {8192: near, 16384: far}, 2, **more)

    run("original", original)
    run("dprope", 0)  # without training: there are fine-tuned ones
    run("dprope", 0, options={"n_hat": 28}, training={"seed": 0})  # another selection
    for seed, far in enumerate(ours):
        run("dprope", far, near, training={"seed": seed})
    finding = only("Without extension", folder)
    assert finding.verdict == verdict
    assert means(finding.facts[0]) == [60, original, near, sum(ours) / 2]


@pytest.mark.parametrize(("low", "verdict"), [(0.1, KIND), (-0.1, NOT)])
def test_the_central_claim_over_selections_wants_both_correlations_positive(folder, low, verdict):
    rank = {"mean": 0.5, "low": low, "high": 0.8, "n": 2}
    rows = [{"interpolated_pairs": [1] * count, "beyond": score(count)} for count in (3, 2)]
    folder.save("selections", scores=rows, spearman={"released": rank | {"low": 0.2}, "equation": rank})
    finding = only("The same, over dozens", folder)
    assert finding.verdict == verdict and any("4 dimensions" in name for name in by_name(finding.facts[0]))


@pytest.mark.parametrize(("found", "verdict"), [(1.0, KIND), (0.9, NOT)])
def test_one_passkey_missed_within_the_extended_length_is_one_too_many(folder, found, verdict):
    lengths = {8192: 1.0, 16384: found, 32768: 0.0}  # the last is beyond L'
    rows = [{"length": length, "mean": mean, "low": 0, "high": 1, "n": 10} for length, mean in lengths.items()]
    folder.save("passkey", method="dprope", scores={"by_length": rows})
    folder.save("passkey", method="dprope", options={"n_hat": 2}, scores={"by_length": rows[2:]})  # an ablation's
    finding = only("All passkeys", folder)
    assert finding.verdict == verdict and means(finding.facts[0]) == [100 * (1 + found) / 2]


@pytest.mark.parametrize(("least", "verdict"), [(30, NOT), (49, KIND)])
def test_an_ablation_is_compared_with_its_largest_value(folder, least, verdict):
    for n_hat, mean in ((48, 50), (40, 51), (28, least)):
        folder.open_llm({"n_hat": n_hat}, mean)
    finding = only("n̂ has little effect", folder)
    assert finding.verdict == verdict
    assert {name: gap.mean for name, gap in by_name(finding.facts[0]).items()} == {"28": least - 50, "40": 1}
    assert findings("b does not", folder)[0].verdict == NONE


def test_an_ablation_of_which_one_value_was_fine_tuned_is_read_without_training(folder):
    for n_hat in (48, 28):
        folder.open_llm({"n_hat": n_hat}, 50)
    folder.open_llm({"n_hat": 28}, 10, training={"seed": 0})
    finding = only("n̂ has little effect", folder)
    assert finding.verdict == KIND and by_name(finding.facts[0])["28"].mean == 0


def test_the_number_of_intervals_is_compared_with_the_papers(folder):
    for options, mean in (({"intervals": 90}, 50), ({}, 51), ({"intervals": 720}, 60)):
        folder.open_llm(options, mean)
    finding = only("b does not", folder)
    assert finding.verdict == NOT
    assert {name: gap.mean for name, gap in by_name(finding.facts[0]).items()} == {"90": -1, "720": 9}


@pytest.mark.parametrize(("at_720", "at_90", "verdict"), [(30, 50, KIND), (50, 50, NOT), (30, 40, NOT)])
def test_longbench_may_fall_at_720_alone(folder, at_720, at_90, verdict):
    for options, mean in (({"intervals": 90}, at_90), ({}, 50), ({"intervals": 720}, at_720)):
        scores = {"buckets": {}, "averages": {"Avg.": score(mean)}, "tasks": {}}
        folder.save("longbench_e", method="dprope", options=options, scores=scores)
    assert only("LongBench-E is the same", folder).verdict == verdict


@pytest.mark.parametrize(("relative", "verdict"), [(1.019, KIND), (1.03, NOT)])
def test_time_may_cost_two_per_cent(folder, relative, verdict):
    rows = [
        {"method": method, "options": {}, "phase": "train", "relative_to_pi": value, "low": value, "high": value}
        for method, value in (("pi", 1.0), ("clex", 3.0), ("dprope", relative))
    ]
    folder.save("time_cost", scores=rows)
    finding = only("No cost over PI", folder)
    assert finding.verdict == verdict and means(finding.facts[0]) == [relative]
