"""What the records say of a claim: typed numbers at each scale, and a verdict that follows from them alone.

Each kind of claim is one function that returns a test: results → findings of that scale, none where nothing of it was
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from analysis import extension, published
from analysis.findings import EXACT, KIND, NOT, Fact, Finding, Quantity, in_kind
from analysis.results import Results
from analysis.rows import (
    SYMBOLS,
    Comparison,
    Metrics,
    Row,
    Setting,
    ablations,
    compared,
    gap,
    in_comparison,
    mean_of,
    tokens,
)
from analysis.scores import Score, difference
from core import rope
from eval.intervals import accuracy_interval

TIME_LIMIT = 1.02  # of PI's time, for every median, whatever its interval: a noisy clock shows nothing
_OURS = (rope.OURS, rope.OURS_BY_NOISE)
_ROUNDING = 0.005  # relative; the published disturbances have three to four digits

Test = Callable[[Results], Iterator[Finding]]
Gaps = Mapping[object, Score]  # by an option's value


# The disturbance


def published_disturbance(results: Results) -> Iterator[Finding]:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's geometry."""
    if results.scale.geometry != published.GEOMETRY:
        return
    numbers, facts, worst = published.disturbance(), [], 0.0
    for run in results.records("disturbance"):
        for row in _of(run, "float32"):
            value = numbers.get((row["method"], float(run["factor"])))
            if value is None or row["options"]:
                continue
            found = 1e3 * row["average"]
            worst = max(worst, abs(found / value - 1))
            facts.append(_published_fact(row["method"], float(run["factor"]), value, found))
    if facts:
        facts.append(Fact((Quantity("largest deviation", Score(100 * worst), unit="%"),)))
        yield Finding(results.scale, EXACT if worst < _ROUNDING else NOT, tuple(facts), "10⁻³ nat")


def _published_fact(method: str, factor: float, value: float, found: float) -> Fact:
    both = (Quantity("published", Score(value)), Quantity("recomputed", Score(found)))
    return Fact(both, factor, rope.METHODS[method].title, abs(found / value - 1) < _ROUNDING)


def least_disturbance(results: Results) -> Iterator[Finding]:
    """DPRoPE's at t = 0 against the least of the other methods'."""
    facts = []
    for run in results.records("disturbance"):
        rows = _of(run, "float64")
        ours = [row for row in rows if row["method"] == rope.OURS and not row["options"]]
        rivals = [row for row in rows if row["method"] not in (rope.ORIGINAL, *_OURS)]
        if not ours or not rivals:
            continue
        rival = min(rivals, key=lambda row: row["average"])
        quantities = tuple(
            Quantity(Setting.of(row | {"factor": run["factor"]}).name, Score(1e3 * row["average"]))
            for row in (ours[0], rival)
        )
        facts.append(Fact(quantities, float(run["factor"]), holds=ours[0]["average"] <= rival["average"]))
    if facts:
        # The disturbance depends on the geometry alone, so the paper's own numbers are met at any size of its models.
        exactly = results.scale.geometry == published.GEOMETRY and in_kind(facts) == KIND
        yield Finding(results.scale, EXACT if exactly else in_kind(facts), tuple(facts), "10⁻³ nat")


def _of(run: dict, precision: str) -> list[dict]:
    """The averages of a record of experiments.disturbance, by the released code's convention."""
    return [r for r in run["scores"] if (r["precision"], r["convention"]) == (precision, "released")]


def disturbance_orders_loss(results: Results) -> Iterator[Finding]:
    """The central claim, without training: whether settings with less disturbance have less loss beyond L."""
    for factor in extension.measured_factors(results):
        rows = extension.untrained(results, factor).only(in_comparison(results.scale)).rows
        moved = [(extension.disturbance(results, row), row) for row in rows]
        pairs = [(average, row.first["ranges"][-1]["mean"]) for average, row in moved if average is not None]
        if len(pairs) < 4 or any(len(set(values)) == 1 for values in zip(*pairs)):  # nothing to order
            continue
        from scipy.stats import spearmanr  # a second to import, and nothing else needs it

        order = spearmanr(*zip(*pairs))
        best = min(rows, key=lambda row: row.first["ranges"][-1]["mean"])
        quantities = (
            Quantity(f"Spearman's ρ over {len(pairs)} settings", Score(float(order.statistic)), signed=True),
            Quantity("p", Score(float(order.pvalue))),
            Quantity(f"least loss, {best.setting.name},", Score.of(best.first["ranges"][-1]), 3, "nats per token"),
        )
        facts = [Fact(quantities, factor, holds=bool(order.pvalue < 0.05 and order.statistic > 0))]
        yield Finding(results.scale, in_kind(facts), tuple(facts), "disturbance and loss beyond L, without training")


def selections_order_loss(results: Results) -> Iterator[Finding]:
    """The same over dozens of selections of pairs: both conventions' correlations have to be above zero."""
    for run in results.records("selections"):
        least = min(run["scores"], key=lambda row: row["beyond"]["mean"])
        dimensions = 2 * len(least["interpolated_pairs"])
        orders = {name: Score.of(order) for name, order in run["spearman"].items()}
        quantities = [
            Quantity(f"Spearman's ρ ({name}) over {order.n} selections", order, signed=True)
            for name, order in orders.items()
        ]
        loss = Score.of(least["beyond"])
        quantities.append(Quantity(f"least loss, {dimensions} dimensions interpolated,", loss, 3, "nats per token"))
        holds = all(order.low > 0 for order in orders.values())
        facts = [Fact(tuple(quantities), float(run["factor"]), holds=holds)]
        yield Finding(results.scale, in_kind(facts), tuple(facts), "disturbance and loss beyond L, without training")


# Against the other methods

Column = Callable[[list[str], str], str]  # which metric, of those there are; the second argument is that of L'


def average(names: list[str], extended: str = "") -> str:
    """The last of the averages, or of all metrics where there is none."""
    return ([name for name in names if name.startswith("Avg")] or names)[-1]


def at_extended_length(names: list[str], extended: str) -> str:
    """That at L'; the last where it was not measured."""
    return extended if extended in names else names[-1]


def better(experiment: str, metrics: Metrics, column: Column, unit: str = "points", sign: int = 1) -> Test:
    """DPRoPE's best variant against the best other method, fine-tuned; where nothing is, without training.

    Args:
        column: the metric to compare.
        sign: -1 where less is better.
    """

    def test(results: Results) -> Iterator[Finding]:
        for trained in (True, False):
            rows = compared(results, experiment, trained).only(_contends).rows
            facts = []
            for factor in sorted({row.setting.factor for row in rows}):
                own = [row for row in rows if row.setting.factor == factor]
                facts += _best_against_best(results, own, metrics, column, unit, sign)
            if facts:
                yield Finding(results.scale, in_kind(facts), tuple(facts), _state(trained))
                return

    return test


def _best_against_best(
    results: Results, rows: list[Row], metrics: Metrics, column: Column, unit: str, sign: int
) -> list[Fact]:
    sides = [[row for row in rows if (row.setting.method in _OURS) is ours] for ours in (True, False)]
    if not all(sides):
        return []
    factor = rows[0].setting.factor
    metric = column(list(metrics(rows[0].first)), tokens(round(results.scale.context_length * factor)))
    ours, rival = (max(side, key=lambda row: sign * mean_of(row, metrics, metric)) for side in sides)
    ahead = gap(ours, rival, metrics, metric)
    quantities = [Quantity(row.setting.name, Score(mean_of(row, metrics, metric))) for row in (ours, rival)]
    quantities.append(Quantity("difference", ahead, unit=unit, signed=True))
    return [Fact(tuple(quantities), factor, metric, is_ahead(ahead, sign))]


def is_ahead(difference: Score, sign: int = 1) -> bool:
    """Whether a difference is an advantage beyond its interval."""
    return difference.low > 0 if sign > 0 else difference.high < 0


def _contends(row: Row) -> bool:
    return row.setting.method not in (None, rope.ORIGINAL) and row.setting.plain("n_hat")


# Within and beyond L


def collapses(experiment: str, metrics: Metrics, unit: str = "", sign: int = 1) -> Test:
    """What the unextended model and DPRoPE (t = 0) lose from L to L'.

    Args:
        metrics: by length in tokens.
        sign: -1 where less is better.
    """

    def test(results: Results) -> Iterator[Finding]:
        facts = []
        originals = newest(results, experiment, rope.ORIGINAL).rows
        for ours in newest(results, experiment, rope.OURS).rows:
            factor = ours.setting.factor
            near, far = (tokens(round(results.scale.context_length * share)) for share in (1, factor))
            pair = [*originals[:1], ours]
            if ours.setting.options or len(pair) < 2 or not all({near, far} <= set(metrics(r.first)) for r in pair):
                continue
            lost = [_lost(row, metrics, near, far, sign) for row in pair]
            had = [mean_of(row, metrics, near) for row in pair]
            quantities = tuple(
                Quantity(f"{called(row)} at {length}", row.scores(metrics)[length], 1, unit)
                for row in pair
                for length in (near, far)
            )
            facts.append(Fact(quantities, factor, experiment, is_lesser_share(lost, had)))
        if facts:
            yield Finding(results.scale, in_kind(facts), tuple(facts))

    return test


def is_lesser_share(lost: list[Score], had: list[float]) -> bool:
    """Whether the first's loss is real, and the second's, at its far end, a lesser share of what it had at L."""
    return lost[0].low > 0 and lost[1].high * had[0] < lost[0].mean * had[1]


def _lost(row: Row, metrics: Metrics, near: str, far: str, sign: int) -> Score:
    """From one length to the other, positive where it is a loss."""
    ends = [row.by_seed(metrics, length) for length in (near, far)]
    return difference(*ends) if sign > 0 else difference(*reversed(ends))


def finds_all_passkeys(results: Results) -> Iterator[Finding]:
    """Those within L', of DPRoPE's settings in the scale's comparison."""
    facts = []
    for row in newest(results, "passkey", rope.OURS).only(in_comparison(results.scale)).rows:
        longest = results.scale.context_length * row.setting.factor
        within = [span for run in row.runs for span in run["scores"]["by_length"] if span["length"] <= longest]
        asked, found = sum(span["n"] for span in within), round(sum(span["mean"] * span["n"] for span in within))
        share = Score.of(accuracy_interval([1.0] * found + [0.0] * (asked - found)), 100)
        quantity = Quantity(called(row), share, 0, f"% of {asked}")
        facts.append(Fact((quantity,), row.setting.factor, holds=found == asked))
    if facts:
        yield Finding(results.scale, in_kind(facts), tuple(facts), "passkeys found within L'")


# Ablations


def ablated(
    experiment: str,
    metrics: Metrics,
    option: str,
    holds: Callable[[Gaps], bool],
    reference: Callable[[list], object] = max,
    default: object = None,
) -> Test:
    """DPRoPE's last metric at each value of an option against that at one of them.

    Args:
        holds: whether the claim does, by each other value's difference.
        reference: picks the value that the others are compared with.
        default: the option's value where a record does not state it.
    """

    def test(results: Results) -> Iterator[Finding]:
        for state, found in list(ablations(results, experiment, option, default))[-1:]:
            base = reference(list(found.rows))
            metric = list(metrics(found.first.first))[-1]
            of = {value: row.scores(metrics)[metric] for value, row in found.rows.items()}
            gaps = {value: difference({None: of[value]}, {None: of[base]}) for value in of if value != base}
            quantities = tuple(Quantity(str(value), score, signed=True) for value, score in gaps.items())
            facts = [Fact(quantities, found.first.setting.factor, metric, holds(gaps))]
            about = f"{state}, difference to {SYMBOLS[option]} = {base}"
            yield Finding(results.scale, in_kind(facts), tuple(facts), about)

    return test


def alike(gaps: Gaps) -> bool:
    """None differs beyond its interval."""
    return all(score.holds_zero for score in gaps.values())


def only_hurts(value: object) -> Callable[[Gaps], bool]:
    """One value is worse than the reference, and no other differs from it."""
    return lambda gaps: (
        value in gaps
        and gaps[value].high < 0
        and alike({other: score for other, score in gaps.items() if other != value})
    )


def least_hurts(gaps: Gaps) -> bool:
    """The least value is worse than the reference."""
    return gaps[min(gaps)].high < 0


def preferably(value: object) -> Callable[[list], object]:
    """That value where it was measured, else the largest."""
    return lambda values: value if value in values else max(values)


# Time


def costs_nothing(results: Results) -> Iterator[Finding]:
    """DPRoPE's time of a training step and of a forward pass, relative to PI's."""
    for record in results.records("time_cost"):
        rows = [row for row in record["scores"] if row["method"] in _OURS]
        if not rows:
            continue
        quantities = tuple(
            Quantity(
                f"{Setting.of(row | {'factor': record['factor']}).name}, {row['phase']}",
                Score(row["relative_to_pi"], row["low"], row["high"]),
                3,
                f"of {rope.METHODS[rope.UNIT].title}",
            )
            for row in rows
        )
        holds = all(row["relative_to_pi"] <= TIME_LIMIT for row in rows)
        facts = [Fact(quantities, float(record["factor"]), holds=holds)]
        yield Finding(results.scale, in_kind(facts), tuple(facts))


# Shared


def newest(results: Results, experiment: str, method: str) -> Comparison:
    """A method's rows: of fine-tuned models where there are any."""
    for trained in (True, False):
        rows = compared(results, experiment, trained).only(lambda row: row.setting.method == method)
        if rows:
            return rows
    return Comparison(())


def called(row: Row) -> str:
    """A row's name, and whether and how often it was fine-tuned."""
    name = row.setting.name
    if row.setting.method == rope.ORIGINAL:
        return name
    seeds = len(row.runs)
    tuned = "fine-tuned, one seed" if seeds == 1 else f"fine-tuned, {seeds} seeds"
    return f"{name} ({tuned if row.trained else 'without training'})"


def _state(trained: bool) -> str:
    return "fine-tuned" if trained else "without training"

