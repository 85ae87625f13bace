"""What tests each kind of claim: functions from the records of a model to statements.

A claim is tested against the paper's own rivals, at the paper's own setting. Both are fixed before
anything is measured: the best of several is never picked by its score.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from analysis import disturbance, metrics, published, row_differences
from analysis.claims.statement import (
    CERTAIN,
    EXACT,
    Statement,
    Test,
    at_papers_n_hat,
    decided,
    measured_on,
    printed,
)
from analysis.comparison import Comparison, Row, ablations, agree, compared
from analysis.hypothesis_tests import ABOVE, BELOW, CONTRADICTED, REPRODUCED, Estimate, Region
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import STATES, SYMBOLS, Setting, extended_length, tokens
from core import discovery, rope

INTERVALS = rope.method_options(rope.PROPOSED)["intervals"]  # b, the paper's own
FLUCTUATION = Region(-0.12, 0.22)  # of the average on Open LLM, in points: the paper's abstract
EXCESS = 720.0  # the b at which LongBench-E falls in the paper
_NAT = "× 10⁻³ nat"
SAMPLES = {
    "longbench_e": "task mean",
    "open_llm": "document",
    "ruler": "task",
}  # of a benchmark: what it averages

# Losses within L and beyond it, on whole books; they are beyond the paper, and there may be no such
# folder.
losses = discovery.module("analysis.beyond.loss_by_position")


def difference(
    row: Row, other: Row, rows: Comparison, experiment: str, metric: str, region: Region, **more
) -> Statement:
    """That a row's score minus another's lies in a region; the two scores stand beside it, unless
    `more` has others."""
    of, names = getattr(metrics, experiment), [each.setting.name for each in (row, other)]
    gap = row_differences.between(row, other, experiment, of, metric, rows)
    means = [printed(Score(each.scores(of)[metric].mean)) for each in (row, other)]
    samples, more = (
        measured_on(row.trained, gap, SAMPLES[experiment]),
        {"beside": list(zip(names, means))} | more,
    )
    what, factor = " minus ".join(names), row.setting.factor
    return Statement(what, gap, samples, factor, metric, region, unit="points", signed=True, **more)


def loss_difference(row: Row, other: Row, region: Region, **more) -> Statement:
    """That a row's loss beyond L minus another's lies in a region.

    Beside it stand the same within L, and the difference of the two: what a method loses in both
    alike, it does not lose by extending.
    """
    names, places = (
        [each.setting.name for each in (row, other)],
        (losses.BEYOND, losses.WITHIN, losses.CHANGE),
    )
    beyond, within, change = (losses.gap(row, other, where) for where in places)
    beside = [
        (where, printed(gap, 3, signed=True)) for where, gap in zip(places[1:], (within, change))
    ]
    number = Estimate.of(beyond)
    return Statement(
        " minus ".join(names),
        number,
        measured_on(row.trained, number, "book"),
        row.setting.factor,
        places[0],
        region,
        beside=beside + list(more.pop("beside", ())),
        unit="nats per token",
        digits=3,
        signed=True,
        **more,
    )


# The disturbance


def published_numbers(results: Results) -> Iterator[Statement]:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's
    geometry."""
    if results.model.plain != published.GEOMETRY:
        return
    for setting, paper, average in disturbance.recomputed(disturbance.FLOAT32):
        deviation = abs(average / paper - 1)
        verdict = (
            EXACT if deviation < 0.005 else CONTRADICTED
        )  # the paper prints three to four digits
        beside, title = (
            [("deviation", f"{100 * deviation:.2f} %")],
            rope.METHODS[setting.method].title,
        )
        yield Statement(
            title,
            Estimate(average),
            "computed",
            setting.factor,
            "",
            None,
            paper,
            beside,
            _NAT,
            verdict=verdict,
        )


def least(results: Results) -> Iterator[Statement]:
    """DPRoPE's disturbance at t = 0 against that of each of the paper's rivals; nothing here is
    random.

    At t = 0 each pair takes the lesser of two disturbances, one of which is PI's, so it cannot be
    above PI's.
    """
    geometry = results.model.plain
    pairs = [
        (factor, rival)
        for rival, factor in published.disturbance()
        if geometry and rival != rope.PROPOSED
    ]
    for factor, rival in sorted(pairs, key=lambda pair: pair[0]):
        ours, other = (Setting(method, (), factor) for method in (rope.PROPOSED, rival))
        average, others = (
            disturbance.compute(geometry, setting).average for setting in (ours, other)
        )
        verdict = CERTAIN if rival == rope.TIME_REFERENCE else REPRODUCED
        verdict = verdict if average < others else CONTRADICTED
        beside = [(other.name, f"{others:.2f} {_NAT}")]
        yield Statement(
            ours.name,
            Estimate(average),
            "computed",
            factor,
            beside=beside,
            unit=_NAT,
            verdict=verdict,
        )


def order_loss(results: Results) -> list[Statement]:
    """The central claim: DPRoPE at t = 0 has the least disturbance, and so less loss beyond L than
    the other methods.

    The others are the paper's rivals and DPRoPE at the paper's n̂. A correlation over a few
    methods, or over selections of pairs that contain each other, would rest on no sample.
    Fine-tuned models are taken first, as in the paper.
    """
    for trained, _ in reversed(STATES):
        statements = []
        for rows, factor, papers in _on_books(results, trained):
            least = rows.find(rope.PROPOSED, {}, factor)
            rivals = [rows.find(method, {}, factor) for method in published.rivals("disturbance")]
            for other in filter(None, [*rivals, papers]) if least else ():
                pair = least.setting, other.setting
                less, more = (
                    disturbance.compute(results.model.geometry, each).average for each in pair
                )
                if less < more:
                    beside = [("disturbances", f"{less:.2f} and {more:.2f} {_NAT}")]
                    statements.append(loss_difference(least, other, BELOW, beside=beside))
        if statements:
            return decided(statements)
    return []


def _on_books(results: Results, trained: bool) -> Iterator[tuple[Comparison, float, Row | None]]:
    """Rows whose losses by position are of enough books, s, and DPRoPE's row at the paper's n̂;
    none without beyond/."""
    for factor in losses.measured_factors(results) if losses else ():
        if rows := losses.sampled(results, factor, trained):
            yield (
                rows,
                factor,
                rows.find(rope.PROPOSED, {"n_hat": results.model.n_hat.get(factor)}, factor),
            )


# Against the paper's rivals


def ahead(experiment: str) -> Test:
    """DPRoPE is ahead of every rival at every factor in a benchmark's average, and on short text as
    good as ever."""

    @at_papers_n_hat(experiment)
    def test(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
        names, factor = list(getattr(metrics, experiment)(ours.first)), ours.setting.factor
        # RULER's unit is a task, and lengths beyond L' are no test of extending to L'.
        longest = [tokens(extended_length(results, factor))] if experiment == "ruler" else []
        averages = [name for name in names if name.startswith("Avg")]
        metric = next(
            (name for name in (*longest, *reversed(averages), *reversed(names)) if name in names),
            None,
        )
        for rival in _rivals(experiment, rows, ours) if metric and not is_miniature(rows) else ():
            effect = published.advantage(experiment, rival.setting.method, factor, metric)
            yield difference(ours, rival, rows, experiment, metric, ABOVE, paper=effect)
        original = _original(results, experiment, ours)
        if experiment == "open_llm" and original and not is_miniature(rows):
            yield difference(ours, original, rows, experiment, metric, FLUCTUATION)

    return test


def is_miniature(rows: Comparison) -> bool:
    """Whether the benchmark was generated in the form of the real one, which tests code and no
    claim."""
    return bool(rows) and "benchmark" in rows.first


def less_loss(results: Results) -> list[Statement]:
    """DPRoPE has less loss beyond L than every rival, without training, as the paper's perplexities
    are."""
    statements = []
    for rows, factor, ours in _on_books(results, trained=False):
        for rival in _rivals("perplexity", rows, ours) if ours else ():
            effect = published.perplexity_advantage(rival.setting.method, factor)
            statements.append(loss_difference(ours, rival, BELOW, paper=effect))
    return decided(statements)


def _rivals(experiment: str, rows: Comparison, ours: Row) -> list[Row]:
    """The paper's rivals at DPRoPE's factor, but for CLEX, which learns too little in so few
    steps."""
    plain = rows.only(lambda row: row.setting.plain())
    methods = [method for method in published.rivals(experiment) if not rope.get(method).start]
    rivals = [plain.find(method, None, ours.setting.factor) for method in methods]
    return [rival for rival in rivals if rival]


def costs_nothing(results: Results) -> list[Statement]:
    """DPRoPE's times of a training step and of a forward pass are no more than PI's, within the
    margin.

    The paper's times show no difference, so the margin is half a unit of their last digit. Both
    methods run the same operators on numbers of the same size, so that only a fault could make a
    difference.
    """
    statements = _times(results, rope.PROPOSED, Region(high=1 + published.time_resolution()))
    return [
        each if each.verdict == CONTRADICTED else replace(each, verdict=CERTAIN)
        for each in statements
    ]


def clex_costs(results: Results) -> list[Statement]:
    """CLEX's times of a training step and of a forward pass are more than PI's."""
    return _times(results, "clex", Region(low=1.0))


def _times(results: Results, method: str, region: Region) -> list[Statement]:
    """That a method's times, as multiples of PI's, lie in a region."""
    statements, unit = [], f"of {rope.METHODS[rope.TIME_REFERENCE].title}"
    for record in results.records("time_cost"):
        for row in record["scores"]:
            if row["method"] == method:
                name = Setting(row["method"], tuple(row["options"].items())).name
                time = Estimate.of(
                    Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"])
                )
                factor, rounds = float(record["factor"]), f"{row['rounds']} rounds"
                statements.append(
                    Statement(name, time, rounds, factor, row["phase"], region, unit=unit, digits=3)
                )
    return decided(statements)


# Over n̂ and b. "No difference" is decided within a margin: the spread of the paper's own numbers.

Regions = dict[
    float, tuple[Region, float]
]  # by value: where its difference belongs, and the paper's difference


def least_is_below(values: list[float], paper: dict[float, float]) -> Regions:
    """The score at the least value is below that at the reference."""
    return {min(values): (BELOW, paper[min(paper)] - paper[max(paper)])}


def alike(values: list[float], paper: dict[float, float]) -> Regions:
    """The score at every value equals that at the reference, within the spread of the paper's own
    numbers."""
    margin = max(paper.values()) - min(paper.values())
    return {value: (Region(-margin, margin), 0.0) for value in values}


def alike_but_excess(values: list[float], paper: dict[float, float]) -> Regions:
    """The score at b = EXCESS is below that at the reference; at every other b it is equal, as in
    :func:`alike`."""
    others = alike(
        [v for v in values if v != EXCESS], {v: score for v, score in paper.items() if v != EXCESS}
    )
    return others | {v: (BELOW, paper[EXCESS] - paper[INTERVALS]) for v in values if v == EXCESS}


def ablated(experiment: str, option: str, regions: Callable[[list[float], dict], Regions]) -> Test:
    """The last metric at each value of an option minus that at a reference value: the paper's own
    b, or the greatest n̂.

    Args:
        regions: from the other values, and the paper's scores by value, to those that have a
            statement.
    """
    own, symbol = INTERVALS if option == "intervals" else None, SYMBOLS[option]

    def test(results: Results) -> list[Statement]:
        by_state = list(ablations(results, experiment, option, own))
        if not by_state or is_miniature(compared(results, experiment, False)):
            return []
        # Within the range of the paper's table; n̂ counts as a share of the dimensions.
        values = published.ablated(f"{option}_open_llm", "Avg.")
        share = (
            results.model.geometry.head_dim / published.GEOMETRY.head_dim
            if option == "n_hat"
            else 1.0
        )
        least, most = min(values) * share, max(values) * share
        rows = {value: row for value, row in by_state[-1][1].items() if least <= value <= most}
        if len(rows) < 2:
            return []
        value = own if own in rows else max(rows)
        reference = rows.pop(value)
        metric = list(getattr(metrics, experiment)(reference.first))[-1]
        paper = published.ablated(
            f"{option}_{experiment}", metric if metric.startswith("Avg") else "Avg."
        )
        among, statements = compared(results, experiment, reference.trained), []
        for other, (region, effect) in regions(list(rows), paper).items():
            gap = difference(
                rows[other], reference, among, experiment, metric, region, paper=effect
            )
            statements.append(replace(gap, what=f"{symbol} = {other:g} minus {symbol} = {value:g}"))
        return decided(statements)

    return test


# Within L and beyond it


def collapse_in_loss(results: Results) -> list[Statement]:
    """Two statements at each factor: the unextended model loses beyond L, and DPRoPE loses less
    there than it."""
    statements = []
    for rows, factor, ours in _on_books(results, trained=False):
        original = rows.find(rope.ORIGINAL, {}, factor)
        if original and ours:
            loss = Estimate.of(losses.level(original, losses.CHANGE))
            books = measured_on(False, loss, "book")
            beside = [
                (where, printed(losses.level(original, where), 3))
                for where in (losses.WITHIN, losses.BEYOND)
            ]
            name, unit = original.setting.name, "nats per token"
            statements.append(
                Statement(
                    name, loss, books, factor, losses.CHANGE, ABOVE, None, beside, unit, 3, True
                )
            )
            statements.append(loss_difference(ours, original, BELOW))
    return decided(statements)


@at_papers_n_hat("passkey")
def collapse_in_passkeys(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
    """Two statements at each factor: the unextended model loses keys from L to L', and DPRoPE keeps
    a greater share.

    None of a model that misses keys at L already: its keys beyond L test nothing.
    """
    original, factor = _original(results, "passkey", ours), ours.setting.factor
    near, far = (tokens(extended_length(results, times)) for times in (1, factor))
    by_length = [row.scores(metrics.passkey) for row in (original, ours) if row]
    if len(by_length) < 2 or not all(
        {near, far} <= each.keys() and each[near].mean for each in by_length
    ):
        return
    if by_length[0][near].mean < 100:
        return
    theirs, mine = (share(each, near, far) for each in by_length)
    lost = replace(theirs, mean=100 - theirs.mean, below=theirs.above, above=theirs.below)
    for row, each, what, number in (
        (original, by_length[0], "lost beyond L", lost),
        (ours, by_length[1], "kept beyond what the original keeps", mine.minus(theirs)),
    ):
        beside = [
            (f"{row.setting.name} at {end}", printed(each[end], 1, "%")) for end in (near, far)
        ]
        samples = measured_on(row.trained, number, "prompt")
        yield Statement(
            what, number, samples, factor, "passkey", ABOVE, None, beside, "%", 0, signed=True
        )


def _original(results: Results, experiment: str, ours: Row) -> Row | None:
    """The unextended model, if it was measured as `ours` was."""
    rows = compared(results, experiment, False).rows
    return next(
        (
            row
            for row in rows
            if row.setting.method == rope.ORIGINAL and agree(row.first, ours.first)
        ),
        None,
    )


def share(scores: Scores, whole: str, rest: str) -> Estimate:
    """One score in per cent of another, with independent errors (delta method); none if one of the
    two has none."""
    of, kept = scores[whole], scores[rest]
    times, (below, above) = 100 / of.mean, Estimate.of(kept).errors
    less, more = Estimate.of(of).errors  # a larger whole makes a smaller share
    ratio = kept.mean / of.mean
    below, above = math.hypot(below, ratio * more), math.hypot(above, ratio * less)
    kept_share = Estimate(times * kept.mean, samples=kept.n, seeds=kept.seeds)
    if None in (of.low, kept.low):
        return kept_share
    return replace(
        kept_share,
        below=times * below,
        above=times * above,
        of_samples=min(of.freedom, kept.freedom),
    )


@at_papers_n_hat("passkey")
def finds_all_passkeys(results: Results, rows: Comparison, ours: Row) -> Iterator[Statement]:
    """No passkey within L' is missed, to the precision of whole per cents.

    It is not tested on a model that misses keys within L already. The rivals stand beside it.
    """
    factor = ours.setting.factor
    shares = [
        (row.setting.name, _passkey_share(results, row, factor))
        for row in _rivals("perplexity", rows, ours)
    ]
    original, region = (
        _original(results, "passkey", ours),
        Region(low=99.5),
    )  # whole per cents are printed
    within = _passkey_share(results, original, 1) if original else None
    if within:
        shares.append(("original within L", within))
    beside = [(name, f"{score.mean:.0f} % of {score.n}") for name, score in shares]
    number = Estimate.of(_passkey_share(results, ours, factor))
    prompts = measured_on(ours.trained, number, "prompt")
    able = region if within is None or within.mean == 100 else None  # else no method can be tested
    yield Statement(
        ours.setting.name, number, prompts, factor, "", able, 100.0, beside, "%", 0, most=100.0
    )


def _passkey_share(results: Results, row: Row, factor: float) -> Score:
    """The per cent of passkeys found within `factor` times L; n counts the prompts of one run."""
    longest = extended_length(results, factor)
    return row.scores(lambda run: {"": metrics.passkeys_within(run, longest)})[""]
