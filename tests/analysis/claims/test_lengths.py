"""The verdicts about lengths within L and beyond it; each comes out every way that it can."""

import math

import pytest

from analysis.claims.finding import overall
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from tests.analysis.claims.made import PAPERS, by_name, decided, only
from tests.analysis.made import on_texts


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
    run("dprope", 0, options=PAPERS)  # without training: there are fine-tuned ones
    run("dprope", 0, training={"seed": 0})  # another selection
    for seed, far in enumerate(ours):
        run("dprope", far, near, options=PAPERS, training={"seed": seed})
    finding = only("Without extension", folder)
    assert tuple(fact.verdict for fact in finding.facts) == verdicts
    kept = 100 * sum(ours) / 2 / near - 100 * original / 60
    assert decided(finding)[1][0] == pytest.approx(kept) and finding.verdict == overall(verdicts)


def test_perplexity_collapses_upward(folder):
    for method, far in (("original", 40), ("dprope", 20)):
        means = {8192: math.log(20), 16384: math.log(far)}
        losses = {n: {f"Book {i}": mean + 0.01 * i for i in range(-3, 4)} for n, mean in means.items()}
        folder.save("perplexity", method=method, options=PAPERS if method == "dprope" else {}, **on_texts(losses))
    finding = only("Without extension", folder)
    assert decided(finding) == [(50, REPRODUCED), (50, REPRODUCED)]


def keys(folder, found, asked, method="dprope", **more):
    lengths = {8192: 1.0, 16384: found, 32768: 0.0}  # the last is beyond L'
    rows = [{"length": length, "mean": mean, "low": 0, "high": 1, "n": asked} for length, mean in lengths.items()]
    folder.save("passkey", method=method, scores={"by_length": rows}, **more)


@pytest.mark.parametrize(
    ("found", "asked", "verdict"),
    [(1.0, 1000, REPRODUCED), (1.0, 10, UNDECIDED), (29 / 30, 30, UNDECIDED), (0.5, 10, CONTRADICTED)],
)
def test_all_passkeys_within_the_extended_length(folder, found, asked, verdict):
    keys(folder, found, asked, options=PAPERS)
    keys(folder, 0.0, asked, options={"n_hat": 2})  # an ablation's
    keys(folder, 0.8, asked, method="yarn")
    keys(folder, 0.0, asked, method="original")
    finding = only("All passkeys", folder)
    beside = {name: score.mean for name, score in by_name(finding.facts[0]).items()}
    assert finding.verdict == verdict
    assert beside == pytest.approx({"YaRN": 90, "original within L": 100, "DPRoPE (n̂ = 40)": 50 * (1 + found)})
