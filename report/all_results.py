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
_NATS = "nats per token"
losses = discovery.module("analysis.beyond.loss_by_position")
keys = discovery.module("analysis.beyond.needles")
learned = discovery.module("analysis.beyond.learned")
if losses:
    SCORES["needles"] = (keys.places, "nats a key, found in %")
    SCORES["loss_by_position"] = (lambda run: {**losses.ranges(run), **losses.places(run)}, _NATS)


def table(folder: Path) -> str:
    """CSV, a line for each score.

    `part` names the folder of records that stand apart from the model's others; `n` counts samples
    or books of each seed, an empty interval is none.
    """
    lines = []
    for measured in results.every(folder):
        lines += _disturbances(measured)
        for part in (measured, *measured.parts()):
            lines += _by_experiment(part)
            for setting, scores in learned.final_losses(part) if learned else ():
                lines += _lines(part, setting, "learned", scores, unit=_NATS)
            lines += _times(part)
    return pd.DataFrame(lines).to_csv(index=False, float_format="%.6g")


def _disturbances(measured: Results) -> Iterator[dict]:
    """Of all methods."""
    for factor in measured.factors if measured.plain else ():
        for setting in disturbance.settings(measured, factor):
            computed = disturbance.compute(measured.plain, setting)
            if computed is None:
                continue
            scores = {"average": Score(computed.average)}
            yield from _lines(measured, setting, "disturbance", scores, unit="10⁻³ nat")


def _by_experiment(measured: Results) -> Iterator[dict]:
    """What was measured by SCORES: one line for all seeds of a setting."""
    for experiment, (of, unit) in SCORES.items():
        for trained, _ in STATES:
            for rows in comparisons(measured, experiment, trained):
                for row in rows.rows:
                    yield from _lines(
                        measured,
                        row.setting,
                        experiment,
                        row.scores(of),
                        unit=unit,
                        trained=trained,
                    )


def _times(measured: Results) -> Iterator[dict]:
    """The times of a training step and of a forward pass."""
    for record in measured.records("time_cost"):
        for setting, row, time in metrics.times(record):
            if not row["again"]:
                scores = {row["phase"]: time}
                yield from _lines(measured, setting, "time_cost", scores, unit="of PI's time")


def _lines(
    measured: Results,
    setting: Setting,
    experiment: str,
    scores: Scores,
    *,
    unit: str,
    trained: bool = False,
) -> Iterator[dict]:
    options = [f"{name}={value}" for name, value in setting.options]
    options += [f"last={setting.last}"] if setting.last else []
    for metric, score in scores.items():
        if score is not None:
            yield {
                "model": measured.name,
                "part": measured.part,
                "method": setting.method,
                "options": " ".join(options),
                "factor": setting.factor,
                "trained": trained,
                "experiment": experiment,
                "metric": metric,
                "value": score.mean,
                "low": score.low,
                "high": score.high,
                "n": score.n,
                "unit": unit,
            }
