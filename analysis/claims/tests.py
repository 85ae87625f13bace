"""What tests each kind of claim: functions from the records of a model to statements.

A claim is tested against the paper's own rivals, at the paper's own setting. Both are fixed before anything is
measured: the best of several is never picked by its score.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from analysis import disturbance, metrics, published, row_differences
from analysis.claims.statement import CERTAIN, EXACT, Statement, Test, at_papers_n_hat, decided, measured_on, printed
from analysis.comparison import Comparison, Row, ablations, agree, compared, factors
from analysis.hypothesis_tests import ABOVE, BELOW, CONTRADICTED, REPRODUCED, Estimate, Region
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import SYMBOLS, Setting, extended_length, tokens
from core import rope

INTERVALS = rope.method_options(rope.PROPOSED)["intervals"]  # b, the paper's own
EXCESS = 720.0  # the b at which LongBench-E falls in the paper
_NAT = "× 10⁻³ nat"
# By experiment: the scores of which differences are taken, what they are over, a difference's unit and decimals.
DIFFERENCES = {
    "perplexity": (metrics.log_perplexity, "text", "nats per token", 3),
    "longbench_e": (metrics.longbench_e, "task mean", "points", 2),
    "open_llm": (metrics.open_llm, "document", "points", 2),
    "ruler": (metrics.ruler, "task mean", "points", 2),
}


def difference(
    row: Row, other: Row, rows: Comparison, experiment: str, metric: str, region: Region, **more
) -> Statement:
    """That a row's score minus another's lies in a region; the two scores stand beside it, unless `more` has others."""
    scores, sample, unit, digits = DIFFERENCES[experiment]
    gap = row_differences.between(row, other, experiment, scores, metric, rows)
    names, factor = [each.setting.name for each in (row, other)], row.setting.factor
    means = [printed(Score(each.scores(getattr(metrics, experiment))[metric].mean)) for each in (row, other)]
    samples, more = measured_on(row.trained, gap, sample), {"beside": list(zip(names, means))} | more
    return Statement(
        " minus ".join(names), gap, samples, factor, metric, region, unit=unit, digits=digits, signed=True, **more
    )


# The disturbance


def published_numbers(results: Results) -> Iterator[Statement]:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's geometry."""
    if results.model.plain != published.GEOMETRY:
        return
    for setting, paper, average in disturbance.recomputed(disturbance.FLOAT32):
        deviation = abs(average / paper - 1)
        verdict = EXACT if deviation < 0.005 else CONTRADICTED  # the paper prints three to four digits
        beside, title = [("deviation", f"{100 * deviation:.2f} %")], rope.METHODS[setting.method].title
        yield Statement(
            title, Estimate(average), "computed", setting.factor, "", None, paper, beside, _NAT, verdict=verdict
        )


def least(results: Results) -> Iterator[Statement]:
    """DPRoPE's disturbance at t = 0 against that of each of the paper's rivals; nothing here is random.

    At t = 0 each pair takes the lesser of two disturbances, one of which is PI's, so it cannot be above PI's.
    """
    geometry = results.model.plain
    pairs = [(factor, rival) for rival, factor in published.disturbance() if geometry and rival != rope.PROPOSED]
    for factor, rival in sorted(pairs, key=lambda pair: pair[0]):
        ours, other = (Setting(method, (), factor) for method in (rope.PROPOSED, rival))
        average, others = (disturbance.compute(geometry, setting).average for setting in (ours, other))
        # The disturbance depends only on the geometry, so a model of the paper's must give the paper's numbers.
        verdict = EXACT if geometry == published.GEOMETRY else REPRODUCED
        verdict = CERTAIN if rival == rope.TIME_REFERENCE else verdict
        verdict = verdict if average < others else CONTRADICTED
        beside = [(other.name, f"{others:.2f} {_NAT}")]
        yield Statement(ours.name, Estimate(average), "computed", factor, beside=beside, unit=_NAT, verdict=verdict)


def order_loss(results: Results) -> list[Statement]:
    """The central claim, without training: of two methods, that with less disturbance has less perplexity at L'.

    The methods are the paper's rivals and DPRoPE at t = 0 and at the paper's n̂. A correlation over a few methods, or
    over selections of pairs that contain each other, would rest on no sample.
    """
    statements = []
    for factor in factors(results, "perplexity"):
        length = tokens(extended_length(results, factor))
        rows = compared(results, "perplexity", False, twins=False, factor=factor)
        wanted = [(method, {}) for method in (*published.rivals("disturbance"), rope.PROPOSED)]
        wanted.append((rope.PROPOSED, {"n_hat": results.model.n_hat.get(factor)}))
        candidates = [rows.find(*each, factor) for each in wanted]
        scored = [row for row in candidates if row and length in row.scores(metrics.perplexity)]
        averages = [disturbance.compute(results.model.geometry, row.setting).average for row in scored]
        by_disturbance = sorted(zip(averages, scored), key=lambda each: each[0])
        for (less, row), (more, other) in itertools.combinations(by_disturbance, 2):
            if less < more:
                beside = [(f"{each.setting.name}, disturbance", f"{average:.2f} {_NAT}")
                          for average, each in ((less, row), (more, other))]  # fmt: skip
                statements.append(difference(row, other, rows, "perplexity", length, BELOW, beside=beside))
    return decided(statements)


# Against the paper's rivals


def ahead(experiment: str) -> Test:
    """DPRoPE is ahead of every rival at every factor in a benchmark's average."""

    @at_papers_n_hat(experiment)
    def test(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
        names = list(getattr(metrics, experiment)(ours.first))
        metric = ([name for name in names if name.startswith("Avg")] or names)[-1]
        for rival in _rivals(experiment, rows, ours):
            effect = published.advantage(experiment, rival.setting.method, ours.setting.factor, metric)
            yield difference(ours, rival, rows, experiment, metric, ABOVE, paper=effect)

    return test


@at_papers_n_hat("perplexity")
def less_perplexity(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
    """DPRoPE has less perplexity than every rival at L'; its logarithm is compared, the loss in nats per token."""
    factor, names = ours.setting.factor, list(metrics.perplexity(ours.first))
    extended = tokens(extended_length(results, factor))
    metric = extended if extended in names else names[-1]
    for rival in _rivals("perplexity", rows, ours):
        effect = published.perplexity_advantage(rival.setting.method, factor)
        yield difference(ours, rival, rows, "perplexity", metric, BELOW, paper=effect)


def _rivals(experiment: str, rows: Comparison, ours: Row) -> list[Row]:
    """The paper's rivals at DPRoPE's factor."""
    plain = rows.only(lambda row: row.setting.plain())
    rivals = [plain.find(method, None, ours.setting.factor) for method in published.rivals(experiment)]
    return [rival for rival in rivals if rival]


def costs_nothing(results: Results) -> list[Statement]:
    """DPRoPE's times of a training step and of a forward pass are no more than PI's, within the margin.

    The paper's times show no difference, so the margin is half a unit of their last digit. Both methods run the same
    operators on numbers of the same size, so that only a fault could make a difference.
    """
    region, unit = Region(high=1 + published.time_resolution()), f"of {rope.METHODS[rope.TIME_REFERENCE].title}"
    statements = []
    for record in results.records("time_cost"):
        for row in record["scores"]:
            if row["method"] == rope.PROPOSED:
                name = Setting(row["method"], tuple(row["options"].items())).name
                time = Estimate.of(Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"]))
                factor, rounds = float(record["factor"]), f"{row['rounds']} rounds"
                statements.append(Statement(name, time, rounds, factor, row["phase"], region, unit=unit, digits=3))
    return [each if each.verdict == CONTRADICTED else replace(each, verdict=CERTAIN) for each in decided(statements)]


# Over n̂ and b. "No difference" is decided within a margin: the spread of the paper's own numbers.

Regions = dict[float, tuple[Region, float]]  # by value: where its difference belongs, and the paper's difference


def least_is_below(values: list[float], paper: dict[float, float]) -> Regions:
    """The score at the least value is below that at the reference."""
    return {min(values): (BELOW, paper[min(paper)] - paper[max(paper)])}


def alike(values: list[float], paper: dict[float, float]) -> Regions:
    """The score at every value equals that at the reference, within the spread of the paper's own numbers."""
    margin = max(paper.values()) - min(paper.values())
    return {value: (Region(-margin, margin), 0.0) for value in values}


def alike_but_excess(values: list[float], paper: dict[float, float]) -> Regions:
    """The score at b = EXCESS is below that at the reference; at every other b it is equal, as in :func:`alike`."""
    others = alike([v for v in values if v != EXCESS], {v: score for v, score in paper.items() if v != EXCESS})
    return others | {v: (BELOW, paper[EXCESS] - paper[INTERVALS]) for v in values if v == EXCESS}


def ablated(experiment: str, option: str, regions: Callable[[list[float], dict], Regions]) -> Test:
    """The last metric at each value of an option minus that at a reference value: the paper's own b, or the greatest n̂.

    Args:
        regions: from the other values, and the paper's scores by value, to those that have a statement.
    """
    own, symbol = INTERVALS if option == "intervals" else None, SYMBOLS[option]

    def test(results: Results) -> list[Statement]:
        by_state = list(ablations(results, experiment, option, own))
        if not by_state:
            return []
        # Within the range of the paper's table; n̂ counts as a share of the dimensions.
        values = published.ablated(f"{option}_open_llm", "Avg.")
        share = results.model.geometry.head_dim / published.GEOMETRY.head_dim if option == "n_hat" else 1.0
        least, most = min(values) * share, max(values) * share
        rows = {value: row for value, row in by_state[-1][1].items() if least <= value <= most}
        if len(rows) < 2:
            return []
        value = own if own in rows else max(rows)
        reference = rows.pop(value)
        metric = list(getattr(metrics, experiment)(reference.first))[-1]
        paper = published.ablated(f"{option}_{experiment}", metric if metric.startswith("Avg") else "Avg.")
        among, statements = compared(results, experiment, reference.trained), []
        for other, (region, effect) in regions(list(rows), paper).items():
            gap = difference(rows[other], reference, among, experiment, metric, region, paper=effect)
            statements.append(replace(gap, what=f"{symbol} = {other:g} minus {symbol} = {value:g}"))
        return decided(statements)

    return test


# Within L and beyond it


def collapses(experiment: str, sample: str) -> Test:
    """Two statements at each factor: the unextended model loses from L to L', and DPRoPE keeps a greater share.

    For perplexities, the share that is kept is the perplexity at L divided by that at L'.

    Args:
        sample: what the scores, which are by length in tokens, are over.
    """
    scores, less_is_better = getattr(metrics, experiment), experiment == "perplexity"

    @at_papers_n_hat(experiment)
    def test(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
        original, factor = _original(results, experiment, ours), ours.setting.factor
        near, far = (tokens(extended_length(results, times)) for times in (1, factor))
        whole, rest = (far, near) if less_is_better else (near, far)
        by_length = [row.scores(scores) for row in (original, ours) if row]
        if len(by_length) < 2 or not all({near, far} <= each.keys() and each[whole].mean for each in by_length):
            return
        theirs, mine = (share(each, whole, rest) for each in by_length)
        lost = replace(theirs, mean=100 - theirs.mean, below=theirs.above, above=theirs.below)
        effect = published.kept_advantage(factor) if experiment == "ruler" else None
        for row, each, what, number, paper in (
            (original, by_length[0], "lost beyond L", lost, None),
            (ours, by_length[1], "kept beyond what the original keeps", mine.minus(theirs), effect),
        ):
            unit = "" if less_is_better else "%"
            beside = [(f"{row.setting.name} at {end}", printed(each[end], 1, unit)) for end in (near, far)]
            samples = measured_on(row.trained, number, sample)
            yield Statement(what, number, samples, factor, experiment, ABOVE, paper, beside, "%", 0, signed=True)

    return test


def _original(results: Results, experiment: str, ours: Row) -> Row | None:
    """The unextended model, if it was measured as `ours` was."""
    rows = compared(results, experiment, False).rows
    return next((row for row in rows if row.setting.method == rope.ORIGINAL and agree(row.first, ours.first)), None)


def share(scores: Scores, whole: str, rest: str) -> Estimate:
    """One score in per cent of another, with independent errors (delta method); none if one of the two has none."""
    of, kept = scores[whole], scores[rest]
    times, (below, above) = 100 / of.mean, Estimate.of(kept).errors
    less, more = Estimate.of(of).errors  # a larger whole makes a smaller share
    ratio = kept.mean / of.mean
    below, above = math.hypot(below, ratio * more), math.hypot(above, ratio * less)
    kept_share = Estimate(times * kept.mean, samples=kept.n, seeds=kept.seeds)
    if None in (of.low, kept.low):
        return kept_share
    return replace(kept_share, below=times * below, above=times * above, of_samples=min(of.freedom, kept.freedom))


@at_papers_n_hat("passkey")
def finds_all_passkeys(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
    """No passkey within L' is missed, to the precision of whole per cents.

    The unextended model and the rivals stand beside it: a model may miss keys within L already.
    """
    factor = ours.setting.factor
    rivals = [rows.find(method, {}, factor) for method in published.rivals("perplexity")]
    shares = [(row.setting.name, _passkey_share(results, row, factor)) for row in rivals if row]
    if original := _original(results, "passkey", ours):
        shares.append(("original within L", _passkey_share(results, original, 1)))
    beside = [(name, f"{score.mean:.0f} % of {score.n}") for name, score in shares]
    number, region = Estimate.of(_passkey_share(results, ours, factor)), Region(low=99.5)  # whole per cents are printed
    prompts = measured_on(ours.trained, number, "prompt")
    yield Statement(ours.setting.name, number, prompts, factor, "", region, 100.0, beside, "%", 0, most=100.0)


def _passkey_share(results: Results, row: Row, factor: float) -> Score:
    """The per cent of passkeys found within `factor` times L; n counts the prompts of one run."""
    longest = extended_length(results, factor)
    return row.scores(lambda run: {"": metrics.passkeys_within(run, longest)})[""]
