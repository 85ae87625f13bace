"""Findings that compare settings: DPRoPE with the best rival, an ablation's values with one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from experiments import scales
from tables import common
from tables.benchmarks import Scores, ablated, comparable, seed, tokens

EXACT, KIND, NOT, NONE = "reproduced exactly", "reproduced in kind", "not reproduced", "not run"


@dataclass(frozen=True)
class Finding:
    """What was measured at one scale.

    Attributes:
        scale: whose records.
        measured: the numbers, with intervals.
        verdict: EXACT, KIND, NOT or NONE.
    """

    scale: str
    measured: str
    verdict: str


def better(
    experiment: str,
    scores: Callable[[dict], Scores],
    metric: Callable[[Scores, str], str],
    sign: int = 1,
    unit: str = "points",
) -> Callable[[Path], Iterator[Finding]]:
    """DPRoPE's better variant against the best fine-tuned rival; where nothing is fine-tuned, the untrained ones.

    Args:
        metric: the column to compare, of those there are, given the name of the one at L'.
        sign: -1 where less is better.
    """

    def test(results: Path) -> Iterator[Finding]:
        for scale in scales.SCALES:
            for trained in (True, False):
                groups = comparable(results, scale, experiment, trained)
                lines, verdicts = [], []
                for factor in scales.get(scale).factors:
                    own = {
                        common.method_name(group[0]): {seed(record): scores(record) for record in group}
                        for group in groups
                        if group[0]["factor"] == factor and not set(group[0]["options"]) - {"n_hat"}
                    }
                    names = {name: "DPRoPE" in name for name in own if name != "Original"}
                    if len(set(names.values())) < 2:
                        continue
                    length = tokens(round(scales.get(scale).geometry.context_length * factor))
                    column = metric(next(iter(next(iter(own.values())).values())), length)

                    def mean(name: str, own: dict = own, column: str = column) -> float:
                        return sign * float(np.mean([run[column]["mean"] for run in own[name].values()]))

                    ours, rival = (
                        max((n for n, mine in names.items() if mine is side), key=mean) for side in (True, False)
                    )
                    gap = difference(own[ours], own[rival], column)
                    lines.append(
                        f"s = {factor:g}, {column}: {ours} {abs(mean(ours)):.2f}, {rival} {abs(mean(rival)):.2f}, "
                        f"difference {gap['mean']:+.2f} [{gap['low']:+.2f}, {gap['high']:+.2f}] {unit}"
                    )
                    wins = gap["low"] > 0 if sign > 0 else gap["high"] < 0
                    verdicts.append(wins)
                if lines:
                    state = "fine-tuned" if trained else "without training"
                    yield Finding(scale, f"{state}: {'; '.join(lines)}.".replace("$", "").replace(r"\hat n", "n̂"),
                                  KIND if all(verdicts) else NOT)  # fmt: skip
                    break

    return test


def ablation(
    experiment: str,
    scores: Callable[[dict], Scores],
    option: str,
    default: object,
    reference: Callable[[list[str]], str],
    holds: Callable[[dict[str, dict]], bool],
) -> Callable[[Path], Iterator[Finding]]:
    """DPRoPE's last column at each value of an option against that at one of them.

    Args:
        option, default: as in :func:`tables.benchmarks.ablated`.
        reference: picks, of the values in ascending order, the one that the others are compared with.
        holds: whether the claim does, given each other value's difference with its interval.
    """

    def test(results: Path) -> Iterator[Finding]:
        for scale in scales.SCALES:
            for block in list(ablated(results, scale, experiment, scores, option, default))[-1:]:
                rows = {row.name: row.scores for row in block.rows}
                base = reference(list(rows))
                column = last()(rows[base])
                gaps = {
                    name: difference({None: own}, {None: rows[base]}, column)
                    for name, own in rows.items()
                    if name != base
                }
                text = "; ".join(
                    f"{name}: {gap['mean']:+.2f} [{gap['low']:+.2f}, {gap['high']:+.2f}]" for name, gap in gaps.items()
                )
                symbol = {"n_hat": "n̂", "intervals": "b"}[option]
                state = f"{block.title.split(', ', 1)[1]}, {column}".replace("$", "")
                yield Finding(scale, f"{state} against {symbol} = {base}: {text}.", KIND if holds(gaps) else NOT)

    return test


def beyond(experiment: str, scores: Callable[[dict], Scores], sign: int = 1) -> Callable[[Path], Iterator[Finding]]:
    """What the original and DPRoPE (t = 0) lose from L to L' = s·L.

    The claim holds where the original's loss is real and DPRoPE's, at the far end of its interval, is a lesser share of
    what it had at L.

    Args:
        scores: by length in tokens.
        sign: -1 where less is better.
    """

    def test(results: Path) -> Iterator[Finding]:
        for scale, preset in scales.SCALES.items():
            lines, verdicts = [], []
            for factor in preset.factors:
                ends = [tokens(round(preset.geometry.context_length * share)) for share in (1, factor)]
                original = newest(results, scale, experiment, "original")
                ours = newest(results, scale, experiment, "dprope", {})
                ours = [group for group in ours if group[0]["factor"] == factor]
                if not original or not ours:
                    continue
                found = [{seed(run): scores(run) for run in group} for group in (original[0], ours[0])]
                if not all(set(ends) <= run.keys() for runs in found for run in runs.values()):
                    continue
                lost = [_lost(runs, *ends, sign) for runs in found]
                had = [_mean(runs, ends[0]) for runs in found]  # each loss is a share of what there was at L
                verdicts.append(lost[0]["low"] > 0 and lost[1]["high"] * had[0] < lost[0]["mean"] * had[1])
                parts = [
                    f"{called(group)} {_mean(runs, ends[0]):.1f} at {ends[0]} and {_mean(runs, ends[1]):.1f} at {ends[1]}"
                    for group, runs in zip((original[0], ours[0]), found)
                ]
                lines.append(f"s = {factor:g}: {', '.join(parts)}")
            if lines:
                name = {"ruler": "RULER"}.get(experiment, experiment)
                yield Finding(scale, f"{name}, {'; '.join(lines)}.", KIND if all(verdicts) else NOT)

    return test


def _lost(runs: dict[int | None, Scores], within: str, past: str, sign: int) -> dict:
    """The loss from one length to the other, positive where it is one."""
    near, far = ({seed: {"": run[at]} for seed, run in runs.items()} for at in (within, past))
    return difference(near, far, "") if sign > 0 else difference(far, near, "")


def _mean(runs: dict[int | None, Scores], column: str) -> float:
    return float(np.mean([run[column]["mean"] for run in runs.values()]))


def newest(results: Path, scale: str, experiment: str, method: str, options: dict | None = None) -> list[list[dict]]:
    """A method's records (with these options, if given), seeds together: of fine-tuned models where there are any."""
    for trained in (True, False):
        groups = [
            group
            for group in comparable(results, scale, experiment, trained)
            if group[0]["method"] == method and options in (None, group[0]["options"])
        ]
        if groups:
            return groups
    return []


def called(group: list[dict]) -> str:
    """The method, and whether and how often it was fine-tuned."""
    name = common.method_name(group[0]).replace("$", "").replace(r"\hat n", "n̂")
    if group[0]["method"] == "original":
        return name
    tuned = "fine-tuned, one seed" if len(group) == 1 else f"fine-tuned, {len(group)} seeds"
    return f"{name} ({tuned if 'training' in group[0] else 'without training'})"


def alike(gaps: dict[str, dict]) -> bool:
    """None differs beyond its interval."""
    return all(gap["low"] <= 0 <= gap["high"] for gap in gaps.values())


def difference(ours: dict[int | None, Scores], rival: dict[int | None, Scores], metric: str) -> dict:
    """Ours minus the rival's with a 95 % interval: Student's over the seeds that both have, else from both intervals.

    Two intervals over samples combine as if independent, which is wider than a paired one would be.
    """
    seeds = ours.keys() & rival.keys()
    if len(seeds) > 1:
        gaps = np.array([ours[seed][metric]["mean"] - rival[seed][metric]["mean"] for seed in sorted(seeds)])
        half = float(stats.t.ppf(0.975, len(seeds) - 1) * stats.sem(gaps))
        return {"mean": float(gaps.mean()), "low": float(gaps.mean()) - half, "high": float(gaps.mean()) + half}
    a, b = (next(iter(scores.values()))[metric] for scores in (ours, rival))
    mean = a["mean"] - b["mean"]
    low = mean - float(np.hypot(a["mean"] - a["low"], b["high"] - b["mean"]))
    high = mean + float(np.hypot(a["high"] - a["mean"], b["mean"] - b["low"]))
    return {"mean": mean, "low": low, "high": high}


def last(prefix: str = "") -> Callable[..., str]:
    """The last column; or the last whose name starts with `prefix`."""
    return lambda scores, length="": [name for name in scores if name.startswith(prefix)][-1]


def extended(scores: Scores, length: str) -> str:
    """The column at L'; where it was not measured, the last."""
    return length if length in scores else last()(scores)
