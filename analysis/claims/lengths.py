"""Claims about lengths within L and beyond it: how much of a score is kept, and the passkeys found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from analysis import published
from analysis.claims.finding import (
    Fact,
    Finding,
    Quantity,
    Test,
    called,
    concluded,
    decided,
    measured,
    papers_own,
    told,
)
from analysis.comparison import Metrics, Row, agree, compared
from analysis.hypothesis_tests import ABOVE, Estimate, Region, decide
from analysis.metrics import passkeys_within
from analysis.results import Results
from analysis.scores import Score, Scores, over_seeds
from analysis.settings import STATES, extended_length, tokens
from core import rope

RESOLUTION = 0.5  # in per cent: the paper's "100 %" of passkeys is rounded to whole per cents


def collapses(experiment: str, metrics: Metrics, unit: str = "", less_is_better: bool = False) -> Test:
    """Two statements at each factor: the unextended model loses from L to L', and DPRoPE keeps a greater share.

    For perplexities, the share that is kept is the perplexity at L divided by that at L'.

    Args:
        metrics: the scores by length in tokens.
    """

    def test(results: Results) -> Finding | None:
        measured_rows, family = [], []
        for factor, original, ours in _pairs(results, experiment):
            ends = [tokens(extended_length(results, times)) for times in (1, factor)]
            scores = [row.scores(metrics) for row in (original, ours)]
            whole, part = reversed(ends) if less_is_better else ends
            both_ends = all({*ends} <= by_length.keys() for by_length in scores)
            if not both_ends or not all(by_length[whole].mean for by_length in scores):
                continue
            theirs, mine = (share(by_length, whole, part) for by_length in scores)
            effect = published.kept_advantage(factor) if experiment == "ruler" else None
            lost = replace(theirs, mean=100 - theirs.mean, below=theirs.above, above=theirs.below)
            family += [(lost, ABOVE, None), (minus(mine, theirs), ABOVE, effect)]
            measured_rows += [(factor, row, ends, by_length) for row, by_length in zip((original, ours), scores)]
        facts = []
        names = ("lost beyond L", "kept beyond what the original keeps") * len(measured_rows)
        for (factor, row, ends, by_length), name, decision in zip(measured_rows, names, decide(family)):
            at = [Quantity(f"{called(row)} at {end}", by_length[end], 1, unit) for end in ends]
            facts.append(Fact((*at, decided(name, decision, 0, "%")), factor, experiment, decision))
        state = dict(STATES)[bool(measured_rows) and measured_rows[-1][1].trained]
        about = told(state, [fact.decision for fact in facts if fact.decision], experiment)
        return concluded(results.model, facts, about, statements=2, factors=len(facts) // 2)

    return test


def _pairs(results: Results, experiment: str) -> Iterator[tuple[float, Row, Row]]:
    """At each factor, the unextended model and DPRoPE, fine-tuned if there are such records."""
    originals = [row for row in compared(results, experiment, False).rows if row.setting.method == rope.ORIGINAL]
    for _, rows in measured(results, experiment)[:1]:
        for factor, ours in papers_own(results, rows).items():
            same = [row for row in originals if agree(row.first, ours.first)]
            if same:
                yield factor, same[0], ours


def share(scores: Scores, whole: str, part: str) -> Estimate:
    """One score in per cent of another, with independent errors (delta method); none if one of the two has none."""
    of, kept = scores[whole], scores[part]
    times, (below, above) = 100 / of.mean, Estimate.of(kept).errors
    less, more = Estimate.of(of).errors  # a larger whole makes a smaller share
    ratio = kept.mean / of.mean
    below, above = math.hypot(below, ratio * more), math.hypot(above, ratio * less)
    kept_share = Estimate(times * kept.mean, samples=kept.n)
    if None in (of.low, kept.low):
        return kept_share
    return replace(kept_share, below=times * below, above=times * above, of_samples=min(of.freedom, kept.freedom))


def minus(ours: Estimate, other: Estimate) -> Estimate:
    """The difference of two independent numbers; without errors if one of them has none."""
    gap = Estimate(ours.mean - other.mean, samples=ours.samples)
    if not (any(ours.errors) and any(other.errors)):
        return gap
    below, above = math.hypot(ours.below, other.above), math.hypot(ours.above, other.below)
    return replace(gap, below=below, above=above, of_samples=min(ours.of_samples, other.of_samples))


def finds_all_passkeys(results: Results) -> Finding | None:
    """No passkey within L' is missed, to the precision of whole per cents.

    The unextended model and the rivals stand beside it: a model may miss keys within L already.
    """
    for state, rows in measured(results, "passkey"):
        own = papers_own(results, rows)
        if not own:
            continue
        shares = [(row, _found(results, row, factor)) for factor, row in own.items()]
        decisions = decide([(Estimate.of(score), Region(low=100 - RESOLUTION), 100.0) for _, score in shares])
        facts = []
        for (row, score), decision in zip(shares, decisions):
            factor = row.setting.factor
            rivals = [rows.find(method, {}, factor) for method in published.rivals("perplexity")]
            others = [_beside(each, _found(results, each, factor)) for each in rivals if each]
            originals = compared(results, "passkey", False).find(rope.ORIGINAL, {}, factor)
            if originals and agree(originals.first, row.first):
                others.append(_beside(originals, _found(results, originals, 1), "original within L"))
            quantity = Quantity(row.setting.name, decision.interval.at_most(100.0), 0, f"% of {score.n}")
            facts.append(Fact((*others, quantity), factor, "", decision))
        return concluded(
            results.model, facts, told(state, decisions, "passkey", len(shares[0][0].runs)), factors=len(facts)
        )
    return None


def _found(results: Results, row: Row, factor: float) -> Score:
    """The per cent of passkeys found within `factor` times L; n counts the prompts of one run."""
    longest = extended_length(results, factor)
    score = over_seeds([{"": passkeys_within(run, longest)} for run in row.runs])[""]
    return replace(score, n=passkeys_within(row.first, longest).n)


def _beside(row: Row, score: Score, name: str = "") -> Quantity:
    return Quantity(name or row.setting.name, Score(score.mean), 0, f"% of {score.n}")
