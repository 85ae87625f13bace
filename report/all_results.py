"""results/all.csv: every score of every model as a line, to read with pandas."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from analysis import disturbance, metrics, results
from analysis.comparison import Metrics, comparisons
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import STATES, Setting
from core import discovery

# By experiment: its scores by metric, and their unit.
SCORES: dict[str, tuple[Metrics, str]] = {
    "longbench_e": (metrics.longbench_e, "%"),
    "open_llm": (metrics.open_llm, "%"),
    "passkey": (metrics.passkey, "%"),
    "perplexity": (metrics.perplexity, "perplexity"),
    "ruler": (metrics.ruler, "%"),
}
if losses := discovery.module("analysis.beyond.loss_by_position"):
    SCORES["loss_by_position"] = (losses.ranges, "nats per token")


def table(folder: Path) -> str:
    """CSV, a line for each score; `n` counts samples or books of each seed, an empty interval is
    none."""
    lines = [line for each in results.every(folder) for line in _lines(each)]
    return pd.DataFrame(lines).to_csv(index=False, float_format="%.6g")


def _lines(measured: Results) -> Iterator[dict]:
    """Disturbances of all methods, then what was measured: one line for all seeds of a setting."""
    if measured.model.plain:
        for factor in measured.model.factors:
            for setting in disturbance.settings(measured, factor):
                computed = Score(disturbance.compute(measured.model.plain, setting).average)
                yield from _of(
                    measured, setting, False, "disturbance", {"average": computed}, "10⁻³ nat"
                )
    for experiment, (of, unit) in SCORES.items():
        for trained, _ in STATES:
            for row in (
                row for rows in comparisons(measured, experiment, trained) for row in rows.rows
            ):
                yield from _of(measured, row.setting, trained, experiment, row.scores(of), unit)
    for record in measured.records("time_cost"):
        for row in (row for row in record["scores"] if not row["again"]):
            setting = Setting.of(row | {"factor": record["factor"]})
            times = {
                row["phase"]: Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"])
            }
            yield from _of(measured, setting, False, "time_cost", times, "of PI's time")


def _of(
    measured: Results, setting: Setting, trained: bool, experiment: str, scores: Scores, unit: str
) -> Iterator[dict]:
    given = [*setting.options, *([("rate", setting.rate)] if setting.rate else [])]
    options = " ".join(f"{name}={value}" for name, value in given)
    line = {
        "model": measured.model.name,
        "method": setting.method,
        "options": options,
        "factor": setting.factor,
    }
    line |= {"trained": trained, "experiment": experiment}
    for metric, score in scores.items():
        if score is not None:
            numbers = {"value": score.mean, "low": score.low, "high": score.high, "n": score.n}
            yield line | {"metric": metric} | numbers | {"unit": unit}
